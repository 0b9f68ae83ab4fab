/** The oracle against histories that it must condemn, and those next to them that it must not. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { KubeObject, StoreEvent } from "../../emulator/store.ts";
import { drawFrom } from "../draw.ts";
import type { Caller } from "../network.ts";
import { createSafety, type Safety } from "./safety.ts";
import { BUDGET, BUDGETS, GROUP, NAMESPACE } from "../names.ts";
import { drawShape, type Shape } from "../shape.ts";
import { pod as podOf, stored } from "../../builders.ts";

const [A, B] = ["ingester-zone-a", "ingester-zone-b"];
const SHAPE: Shape = {
  ...drawShape(drawFrom(1)),
  zones: [A, B],
  replicas: 3,
  maxUnavailable: 1,
  budget: 1,
  secondsBetween: 0,
  mirrored: undefined,
  partitioned: false,
  certificate: undefined,
  ignore: false,
  prepared: false,
};
const RECONCILER: Caller = { actor: "reconciler-1", call: "DELETE pods/x" };
const DRAINER: Caller = { actor: "drainer", call: "POST pods/x/eviction" };
const EVICTION = "/admission/mutate-pod-eviction";
const HUMAN: Caller = { actor: "human", call: "DELETE pods/x" };

const pod = (name: string, { uid = name, ready = true, terminating = false } = {}): KubeObject => {
  const metadata = terminating ? { deletionTimestamp: "2026-01-01T00:10:00Z" } : {};
  const status = { conditions: [{ type: "Ready", status: ready ? "True" : "False" }] };
  return stored(podOf(name, { namespace: NAMESPACE, metadata, status }), uid);
};
const taken = (name: string, given: { uid?: string; ready?: boolean } = {}): StoreEvent => ({
  type: "MODIFIED",
  resource: "pods",
  object: pod(name, { ...given, terminating: true }),
  previous: pod(name, given),
});
const elsewhere = ({ object, ...event }: StoreEvent): StoreEvent => ({
  ...event,
  object: { ...object, metadata: { ...object.metadata, namespace: "other" } },
});
const back = (name: string): StoreEvent => ({
  type: "MODIFIED",
  resource: "pods",
  object: pod(name, { uid: `${name}-new` }),
});
const scaled = (name: string, replicas: number): StoreEvent => ({
  type: "MODIFIED",
  resource: "statefulsets.apps",
  object: { ...pod(name), spec: { replicas } },
});

/** All that the histories take. */
const RESERVED = [A, B].flatMap((zone) => [`${zone}/1`, ...[0, 1, 2, 3, 4].map((ordinal) => `${zone}-${ordinal}`)]);

type Change = "deleted" | "made" | "broken" | "later";

function judge(
  shape: Partial<Shape>,
  happen: (safety: Safety, change: (what: Change) => void) => void,
  prepared: readonly string[] = [],
  reserved: readonly string[] = RESERVED,
): string[] {
  const violations: string[] = [];
  const all = { ...SHAPE, ...shape };
  const oracle = createSafety({
    shape: all,
    violated: (what) => void violations.push(what),
    isPrepared: (uid) => prepared.includes(uid),
    leavingSince: (uid) => LEAVING[uid],
    reservations: () =>
      Object.fromEntries(reserved.map((key) => [key, { uid: key, ...(key.includes("/") && { kind: "downscale" }) }])),
    listPods: (zone) => [0, 1, 2].map((ordinal) => pod(`${zone}-${ordinal}`)),
    now: () => time,
  });
  const begin = Date.parse("2026-01-01T00:10:00Z");
  let time = begin;
  const budgeted = (type: StoreEvent["type"], spec: object): StoreEvent => ({
    type,
    resource: BUDGETS,
    object: { ...pod(BUDGET), spec },
  });
  if (all.budget !== undefined) oracle.onEvent(budgeted("ADDED", {}), HUMAN);
  happen(oracle, (change) => {
    if (change === "later") time += 240_000;
    else
      oracle.onEvent(
        budgeted(
          change === "deleted" ? "DELETED" : "MODIFIED",
          change === "broken" ? { podNamePartitionRegex: "([" } : {},
        ),
        HUMAN,
      );
  });
  return violations;
}

/** Of the pods of the first zone the last knows for two minutes that it goes, the one before for half a minute. */
const LEAVING: Readonly<Record<string, number>> = {
  [`${A}-2`]: Date.parse("2026-01-01T00:08:00Z"),
  [`${A}-1`]: Date.parse("2026-01-01T00:09:30Z"),
};

const CALLERS: Readonly<Record<string, Caller>> = { reconciler: RECONCILER, drainer: DRAINER, human: HUMAN };
const zoneNamed = (letter: string): string => `ingester-zone-${letter}`;

/** `reconciler takes a-0, a-0 is back, drainer takes unready b-1, human scales a to 2`. */
function play(history: string, { onEvent }: Safety): void {
  for (const line of history.split(", ")) {
    const [who = "", does, ...words] = line.split(" ");
    const caller = CALLERS[who] ?? HUMAN;
    const object = words.at(-1) ?? "";
    if (does === "is") onEvent(back(zoneNamed(who)), HUMAN);
    else if (does === "scales") onEvent(scaled(zoneNamed(words[0] ?? ""), Number(object)), caller);
    else {
      const event = taken(zoneNamed(object), { ready: words[0] !== "unready" });
      onEvent(words[0] === "elsewhere" ? elsewhere(event) : event, caller);
    }
  }
}

const TOO_SOON = { secondsBetween: 180 };
const BY_PARTITION = { partitioned: true };
const NO_BUDGET = { budget: undefined };
const CASES: readonly (readonly [name: string, shape: Partial<Shape>, history: string, violation?: RegExp])[] = [
  [
    "two downscales too soon",
    TOO_SOON,
    "reconciler scales a to 2, reconciler scales b to 2",
    /after .*zone-a was scaled/,
  ],
  ["two downscales without a time between them", {}, "reconciler scales a to 2, reconciler scales b to 2"],
  ["two downscales of one zone", TOO_SOON, "reconciler scales a to 2, reconciler scales a to 1"],
  ["two zones by the reconciler", {}, "reconciler takes a-0, reconciler takes b-0", /two zones/],
  ["an eviction beside a rollout", {}, "reconciler takes a-0, drainer takes b-1", /two zones/],
  ["two pods of a zone, one allowed", {}, "drainer takes a-0, reconciler takes a-1", /2 pods of/],
  ["a downscale beside an eviction", {}, "drainer takes a-0, reconciler scales b to 1", /two zones/],
  ["two pods of a zone, two allowed", { maxUnavailable: 2 }, "reconciler takes a-0, reconciler takes a-1"],
  ["one zone after the other", {}, "reconciler takes a-0, a-0 is back, reconciler takes b-0"],
  ["what a human deletes", {}, "human takes a-0, reconciler takes b-0"],
  ["a pod that was not ready", {}, "reconciler takes unready a-0, reconciler takes b-0"],
  ["a pod that is not wanted any more", {}, "reconciler takes a-2, human scales a to 2, reconciler takes b-0"],
  ["evictions of one ordinal, by partition", BY_PARTITION, "drainer takes a-0, drainer takes b-0", /two zones/],
  ["the same, two allowed by partition", { ...BY_PARTITION, budget: 2 }, "drainer takes a-0, drainer takes b-0"],
  ["evictions of two ordinals, by partition", BY_PARTITION, "drainer takes a-0, drainer takes b-1"],
  [
    "two zones by the reconciler, by partition",
    BY_PARTITION,
    "reconciler takes a-0, reconciler takes b-1",
    /two zones/,
  ],
  [
    "more pods than a budget in percent allows, rounded down",
    { percent: 67, budget: 1 },
    "drainer takes a-0, drainer takes a-1, drainer takes a-2",
    /3 pods of ingester-zone-a at once, 2 are allowed/,
  ],
  [
    "two zones whose pods begin at a later ordinal",
    { firstOrdinal: 2 },
    "reconciler takes a-2, reconciler takes b-4",
    /two zones at once/,
  ],
  ["pods of the same names in another namespace", NO_BUDGET, "reconciler takes a-0, reconciler takes elsewhere b-0"],
  ["evictions that no budget selects", NO_BUDGET, "drainer takes a-0, drainer takes b-0"],
];

describe("the oracle of safety", () => {
  for (const [name, shape, history, expected] of CASES)
    it(`${expected ? "condemns" : "accepts"} ${name}`, () => {
      const violations = judge(shape, (safety) => play(history, safety));
      assert.equal(violations.length, expected ? 1 : 0, violations.join("; "));
      if (expected) assert.match(violations[0] ?? "", expected);
    });

  it("condemns a downscale whose pods were not prepared", () => {
    const labels = { "grafana.com/prepare-downscale": "true" };
    const shrink =
      (previous: KubeObject) =>
      ({ onEvent }: Safety): void =>
        onEvent({ ...scaled(A, 2), previous }, HUMAN);
    const labelled = { ...pod(A), metadata: { ...pod(A).metadata, labels } };
    assert.match(judge({ prepared: true }, shrink(labelled)).join(), /ingester-zone-a-2 was not prepared/);
    assert.deepEqual(judge({ prepared: true }, shrink(labelled), [`${A}-2`]), []);
    assert.deepEqual(judge({ prepared: true }, shrink(pod(A))), []);
  });

  it("condemns a downscale before its pods have known it for the delay", () => {
    const shrink =
      (zone: string, to: number, caller = RECONCILER) =>
      ({ onEvent }: Safety): void =>
        onEvent(scaled(zone, to), caller);
    const mirrored = { delayMs: 120_000 };
    assert.deepEqual(judge({ mirrored }, shrink(A, 2)), []);
    assert.match(judge({ mirrored }, shrink(A, 1)).join(), /zone-a-1 has known it for 30000 ms instead of 120000$/);
    assert.match(judge({ mirrored }, shrink(B, 2)).join(), /zone-b-2 has known it for 0 ms/);
    assert.deepEqual(judge({ mirrored }, shrink(B, 2, HUMAN)), []);
    // It was long on its way.
    assert.deepEqual(judge({ mirrored }, shrink(B, 2, { ...RECONCILER, sentAt: -Infinity })), []);
    assert.deepEqual(judge({ mirrored: { delayMs: 0 } }, shrink(B, 2)), []);
  });

  it("condemns evictions under an invalid budget, and judges none without a budget or by a new one", () => {
    const evictBoth = (...changes: readonly Change[]): string =>
      judge({}, ({ onEvent }, change) => {
        for (const one of changes) change(one);
        onEvent(taken(`${A}-0`), DRAINER);
        onEvent(taken(`${B}-0`), DRAINER);
      }).join();
    assert.match(evictBoth(), /^two zones at once/);
    assert.match(evictBoth("broken", "later"), /zone-a-0 is evicted although its budget has long been invalid/);
    assert.doesNotMatch(evictBoth("broken"), /invalid/);
    assert.equal(evictBoth("deleted", "later"), "");
    assert.equal(evictBoth("deleted", "made"), "");
    assert.match(evictBoth("deleted", "made", "later"), /two zones/);
  });

  it("condemns what is taken without a reservation, if the budget has long been as it is", () => {
    const take = (
      reserved: readonly string[],
      event: StoreEvent,
      caller: Caller,
      ...changes: readonly Change[]
    ): string =>
      judge(
        {},
        ({ onEvent }, change) => {
          for (const one of changes) change(one);
          onEvent(event, caller);
        },
        [],
        reserved,
      ).join();
    assert.match(take([], taken(`${A}-0`), RECONCILER), /zone-a-0 is taken by reconciler-1 without a reservation/);
    assert.match(take([`${A}-1`], taken(`${A}-0`), DRAINER), /without a reservation/);
    assert.equal(take([`${A}-0`], taken(`${A}-0`), DRAINER), "");
    assert.equal(take([], taken(`${A}-0`), HUMAN), "");
    assert.match(take([`${A}-0`], scaled(A, 2), RECONCILER), /scales ingester-zone-a to 2 without a reservation/);
    assert.equal(take([`${A}/1`], scaled(A, 2), RECONCILER), "");
    assert.equal(take([], taken(`${A}-0`), RECONCILER, "later", "broken", "made"), "");
    assert.match(take([], taken(`${A}-0`), RECONCILER, "broken", "made", "later"), /without a reservation/);
  });

  it("condemns an eviction that is allowed for whatever pod has the name", () => {
    const allow = (name: string, deleteOptions: object, patch: object): string =>
      judge({}, ({ onReview }) => {
        const request = { uid: "u", name, object: { deleteOptions } };
        const encoded = Buffer.from(JSON.stringify(patch)).toString("base64");
        const answer = JSON.stringify({ response: { uid: "u", allowed: true, patch: encoded } });
        onReview({ path: EVICTION, sent: JSON.stringify({ request }), status: 200, answer, lateMs: -1 });
      }).join();
    assert.match(allow(`${A}-0`, {}, []), /zone-a-0 is allowed for whatever pod has its name/);
    assert.equal(allow(`${A}-0`, {}, [{ value: { uid: "x" } }]), "");
    assert.equal(allow(`${A}-0`, { preconditions: { uid: "x" } }, []), "");
    assert.equal(allow("other-0", {}, []), "");
  });

  it("a downscale waits five minutes for a pod that does not come up", () => {
    const shrink = (...waits: readonly "later"[]): string =>
      judge({}, ({ onEvent }, change) => {
        onEvent(taken(`${A}-0`), RECONCILER);
        for (const wait of waits) change(wait);
        onEvent(scaled(B, 2), RECONCILER);
      }).join();
    assert.match(shrink("later"), /scales ingester-zone-b to 2 while ingester-zone-a-0 are missing/);
    assert.equal(shrink("later", "later"), "");
  });

  it("forgets a downscale that somebody wrote over or deleted", () => {
    const annotated = (replicas: number): KubeObject => {
      const { object } = scaled(A, replicas);
      return { ...object, metadata: { ...object.metadata, annotations: { "grafana.com/last-downscale": "then" } } };
    };
    const play =
      (isKept: boolean) =>
      ({ onEvent }: Safety): void => {
        onEvent(scaled(A, 2), RECONCILER);
        const object = isKept ? annotated(2) : scaled(A, 2).object;
        onEvent({ type: "MODIFIED", resource: "statefulsets.apps", object, previous: annotated(2) }, HUMAN);
        onEvent(scaled(B, 2), RECONCILER);
      };
    assert.match(judge({ secondsBetween: 180 }, play(true)).join(), /after ingester-zone-a was scaled down/);
    const recreate = ({ onEvent }: Safety): void => {
      onEvent(scaled(A, 2), RECONCILER);
      onEvent({ ...scaled(A, 2), type: "DELETED" }, HUMAN);
      onEvent(scaled(B, 2), RECONCILER);
    };
    assert.deepEqual(judge({ secondsBetween: 180 }, recreate), []);
    assert.deepEqual(judge({ secondsBetween: 180 }, play(false)), []);
  });

  it("condemns a renewal after which a webhook is not trusted any more", () => {
    const secret: StoreEvent = { type: "DELETED", resource: "secrets", object: pod("any") };
    const shake = (spentMinutes: number, ...steps: readonly ("good" | "bad" | "spoilt" | "new" | Change)[]): string =>
      judge({ certificate: { spentMinutes } }, ({ onHandshake, onEvent }, change) => {
        for (const step of steps)
          if (step === "spoilt") onEvent(secret, HUMAN);
          else if (step === "new") onEvent({ ...secret, type: "ADDED" }, { ...HUMAN, actor: "certificates-1" });
          else if (step === "good") onHandshake("/a", undefined);
          else if (step === "bad") onHandshake("/a", "x509: certificate signed by unknown authority");
          else change(step);
      }).join();
    assert.match(shake(39, "good", "bad"), /a renewal of the certificate has broken \/a/);
    assert.equal(shake(39, "bad", "good"), "");
    assert.equal(shake(39, "good", "spoilt", "good", "bad"), "");
    assert.match(shake(39, "good", "spoilt", "later", "good", "bad"), /has broken/);
    assert.equal(shake(39, "good", "spoilt", "later", "good", "new", "bad"), "");
    assert.equal(shake(58, "good", "bad"), "", "it may have expired before a job ran");
  });

  it("judges evictions under Ignore only if a webhook was asked", () => {
    const evictBoth = (asked: boolean): string =>
      judge({ ignore: true }, ({ onEvent, onReview }) => {
        for (const name of [`${A}-0`, `${B}-0`]) {
          const request = { uid: "u", name, object: { deleteOptions: { preconditions: { uid: name } } } };
          const answer = JSON.stringify({ response: { uid: "u", allowed: true } });
          if (asked) onReview({ path: EVICTION, sent: JSON.stringify({ request }), status: 200, answer, lateMs: -1 });
          onEvent(taken(name), DRAINER);
        }
      }).join();
    assert.match(evictBoth(true), /^two zones/);
    assert.equal(evictBoth(false), "");
  });

  it("counts a downscale under Ignore only if a webhook was asked", () => {
    const { metadata, ...rest } = pod(A);
    const toPrepare = { ...rest, metadata: { ...metadata, labels: { "grafana.com/prepare-downscale": "true" } } };
    const shrinkBoth = (asked: boolean): string =>
      judge(
        { ignore: true, prepared: true, secondsBetween: 180 },
        ({ onEvent, onReview }) => {
          const answer = JSON.stringify({ response: { uid: "u", allowed: true } });
          const sent = JSON.stringify({ request: { uid: "u", name: A } });
          const path = asked ? "/admission/prepare-downscale" : "/admission/no-downscale";
          onReview({ path, sent, status: 200, answer, lateMs: -1 });
          onEvent({ ...scaled(A, 2), previous: toPrepare }, { ...HUMAN, call: "PATCH statefulsets/x/scale" });
          onEvent(scaled(B, 2), RECONCILER);
        },
        [`${A}-2`],
      ).join();
    assert.match(shrinkBoth(true), /ingester-zone-b to 2 0 ms after ingester-zone-a/);
    assert.equal(shrinkBoth(false), "");
    // No webhook judges a zone without the label.
    assert.deepEqual(
      judge({ prepared: true }, ({ onEvent }) => onEvent(scaled(A, 2), HUMAN)),
      [],
    );
  });

  it("waits for the shorter of two zones' own times between downscales", () => {
    const shrinkBoth = (minTimes: Readonly<Record<string, number>>): string =>
      judge({ secondsBetween: 90, minTimes }, ({ onEvent }, change) => {
        onEvent(scaled(A, 2), RECONCILER);
        change("later");
        onEvent(scaled(B, 2), RECONCILER);
      }).join();
    assert.match(shrinkBoth({ [A]: 600, [B]: 600 }), /ingester-zone-b to 2 240000 ms after ingester-zone-a/);
    assert.equal(shrinkBoth({ [A]: 600, [B]: 90 }), "");
  });

  it("condemns a webhook that answers 5xx, or another request", () => {
    const review = (uid: string): string => JSON.stringify({ request: { uid } });
    const answer = (uid: string): string => JSON.stringify({ response: { uid } });
    const told = (status: number, uid: string): string[] =>
      judge({}, ({ onReview }) =>
        onReview({ path: EVICTION, sent: review("a"), status, answer: answer(uid), lateMs: -1 }),
      );
    assert.deepEqual(told(200, "a"), []);
    assert.match(told(200, "b").join(), /another request/);
    assert.match(told(500, "a").join(), /answers 500/);
    const late = judge({}, ({ onReview }) =>
      onReview({ path: EVICTION, sent: review("a"), status: 200, answer: answer("a"), lateMs: 1 }),
    );
    assert.match(late.join(), /1 ms after its deadline/);
  });

  it("condemns a reconciler that takes a pod which no StatefulSet controls", () => {
    const deleted = (labels: Record<string, string>, owners: object[]): string => {
      const one = pod(`${A}-debug`);
      const metadata = { ...one.metadata, labels, ownerReferences: owners as never };
      const object = { ...one, metadata: { ...metadata, deletionTimestamp: "2026-01-01T00:10:00Z" } };
      const event: StoreEvent = { type: "MODIFIED", resource: "pods", object, previous: { ...one, metadata } };
      return judge({}, ({ onEvent }) => onEvent(event, RECONCILER)).join();
    };
    assert.match(deleted({ app: GROUP }, []), /takes ingester-zone-a-debug, which no StatefulSet controls/);
    assert.equal(deleted({ app: GROUP }, [{ uid: "a" }]), "");
    assert.equal(deleted({ app: "other" }, []), "");
  });

  it("condemns a call to what is no host of a pod", () => {
    const called = (host: string): string =>
      judge({}, ({ onSent }) => onSent({ ...RECONCILER, call: `POST http://${host}/prepare` })).join();
    assert.equal(called(`${A}-0.${A}.zonewise.svc.cluster.local.:80`), "");
    assert.equal(called("prometheus:9090"), "");
    assert.match(called(`${A}-0.elsewhere.example.zonewise.svc.cluster.local.`), /which is no host of a pod/);
  });

  it("condemns a zone that shrinks against its label, or whose first pods go unprepared", () => {
    const changed = (labels: Record<string, string>, spec: object, call = "PATCH statefulsets/x"): string => {
      const before = { ...pod(A), metadata: { ...pod(A).metadata, labels }, spec: { replicas: 3 } };
      const object = { ...before, spec: { replicas: 3, ...spec } };
      const event: StoreEvent = { type: "MODIFIED", resource: "statefulsets.apps", object, previous: before };
      return judge({ downscales: { asOriginal: true } }, ({ onEvent }) => onEvent(event, { ...HUMAN, call })).join();
    };
    const [pinned, prepared] = [{ "grafana.com/no-downscale": "true" }, { "grafana.com/prepare-downscale": "true" }];
    assert.match(changed(pinned, { replicas: 2 }), /must not shrink by its label/);
    assert.equal(changed(pinned, { replicas: 2 }, "PATCH statefulsets/x/scale"), "");
    assert.equal(changed({}, { replicas: 2 }), "");
    assert.match(changed(prepared, { ordinals: { start: 1 } }), /first ordinal 1: its pods are not prepared/);
    assert.equal(changed({}, { ordinals: { start: 1 } }), "");
  });
});
