/** The oracle against histories that it must condemn, and those next to them that it must not. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { parse } from "yaml";
import type { KubeObject, StoreEvent } from "../../emulator/store.ts";
import { drawFrom } from "../draw.ts";
import type { Caller } from "../network.ts";
import { createSafety, type Safety } from "./safety.ts";
import { BUDGET, BUDGETS, GROUP, NAMESPACE } from "../names.ts";
import { drawShape, type Shape } from "../shape.ts";
import { pod as podOf, stored } from "../../builders/objects.ts";

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
const HUMAN: Caller = { actor: "human", call: "PATCH statefulsets/x" };
const CALLERS: Readonly<Record<string, Caller>> = {
  reconciler: { actor: "reconciler-1", call: "DELETE pods/x" },
  // What it does was long on its way.
  latecomer: { actor: "reconciler-1", call: "DELETE pods/x", sentAt: -Infinity },
  drainer: { actor: "drainer", call: "POST pods/x/eviction" },
  human: HUMAN,
};
const EVICTION = "/admission/mutate-pod-eviction";
const BEGIN = Date.parse("2026-01-01T00:10:00Z");
/** Of the pods of the first zone the last knows for two minutes that it goes, the one before for half a minute. */
const LEAVING: Readonly<Record<string, number>> = { [`${A}-2`]: BEGIN - 120_000, [`${A}-1`]: BEGIN - 30_000 };

const pod = (name: string, { uid = name, ready = true, metadata = {} } = {}): KubeObject => {
  const status = { conditions: [{ type: "Ready", status: ready ? "True" : "False" }] };
  return stored(podOf(name, { namespace: NAMESPACE, metadata, status }), uid);
};
const ending = { deletionTimestamp: "2026-01-01T00:10:00Z" };
const set = (name: string, replicas: number, metadata = {}): KubeObject => ({
  ...pod(name, { metadata }),
  spec: { replicas },
});
const TO_PREPARE = { labels: { "grafana.com/prepare-downscale": "true" } };
const SHRUNK = { annotations: { "grafana.com/last-downscale": "then" } };
const ofSet = (object: KubeObject, previous?: KubeObject): StoreEvent => ({
  type: "MODIFIED",
  resource: "statefulsets.apps",
  object,
  ...(previous && { previous }),
});
const ofBudget = (type: StoreEvent["type"], spec: object): StoreEvent => ({
  type,
  resource: BUDGETS,
  object: { ...pod(BUDGET), spec },
});

/** A history: the oracle, and what it asks of the world. */
class Played {
  readonly violations: string[] = [];
  now = BEGIN;
  prepared: readonly string[] = [];
  /** All that histories take. */
  reserved: readonly string[] = [A, B].flatMap((zone) => [`${zone}/1`, ...[0, 1, 2, 3, 4].map((i) => `${zone}-${i}`)]);
  readonly oracle: Safety;

  constructor(shape: Partial<Shape>) {
    const whole = { ...SHAPE, ...shape };
    this.oracle = createSafety({
      shape: whole,
      violated: (what) => void this.violations.push(what),
      isPrepared: (uid) => this.prepared.includes(uid),
      leavingSince: (uid) => LEAVING[uid],
      reservations: () =>
        Object.fromEntries(
          this.reserved.map((key) => [key, { uid: key, ...(key.includes("/") && { kind: "downscale" }) }]),
        ),
      listPods: (zone) => [0, 1, 2].map((ordinal) => pod(`${zone}-${ordinal}`)),
      now: () => this.now,
    });
    if (whole.budget !== undefined) this.oracle.onEvent(ofBudget("ADDED", {}), HUMAN);
  }

  review(path: string, request: object, response: object, { status = 200, lateMs = -1 } = {}): void {
    const [sent, answer] = [JSON.stringify({ request }), JSON.stringify({ response })];
    this.oracle.onReview({ path, sent, status, answer, lateMs });
  }
}

const named = (short: string): string => `ingester-zone-${short}`;

/** By how a line begins: what happens, with the words that are left. */
const HAPPENINGS: readonly (readonly [RegExp, (played: Played, words: readonly string[]) => void])[] = [
  [/^later$/, (played) => void (played.now += 240_000)],
  [/^nothing is reserved$/, (played) => void (played.reserved = [])],
  [/^only (\S+) is reserved$/, (played, [what = ""]) => void (played.reserved = [named(what)])],
  [/^(\S+) is prepared$/, (played, [name = ""]) => void (played.prepared = [named(name)])],
  [
    /^the budget is broken$/,
    ({ oracle }) => oracle.onEvent(ofBudget("MODIFIED", { podNamePartitionRegex: "([" }), HUMAN),
  ],
  [/^the budget is deleted$/, ({ oracle }) => oracle.onEvent(ofBudget("DELETED", {}), HUMAN)],
  [/^the budget is made$/, ({ oracle }) => oracle.onEvent(ofBudget("MODIFIED", {}), HUMAN)],
  [
    /^the Secret is (made|deleted)$/,
    ({ oracle }, [what]) =>
      oracle.onEvent(
        { type: what === "made" ? "ADDED" : "DELETED", resource: "secrets", object: pod("any") },
        what === "made" ? { ...HUMAN, actor: "certificates-1" } : HUMAN,
      ),
  ],
  [/^a webhook is trusted$/, ({ oracle }) => oracle.onHandshake("/a", undefined)],
  [/^a webhook is not$/, ({ oracle }) => oracle.onHandshake("/a", "x509: certificate signed by unknown authority")],
  [
    /^a webhook lets (\S+) go$/,
    (played, [name = ""]) =>
      played.review(
        /\d$/.test(name) ? EVICTION : "/admission/prepare-downscale",
        { uid: "u", name: named(name), object: { deleteOptions: { preconditions: { uid: "x" } } } },
        { uid: "u", allowed: true },
      ),
  ],
  [
    /^(\S+) is back$/,
    ({ oracle }, [name = ""]) =>
      oracle.onEvent({ type: "MODIFIED", resource: "pods", object: pod(named(name), { uid: "new" }) }, HUMAN),
  ],
  [
    /^(\w+) takes (?:(unready|elsewhere) )?(\S+)$/,
    ({ oracle }, [who = "", how, name = ""]) => {
      const given = { ready: how !== "unready", metadata: how === "elsewhere" ? { namespace: "other" } : {} };
      const object = pod(named(name), { ...given, metadata: { ...given.metadata, ...ending } });
      oracle.onEvent({ type: "MODIFIED", resource: "pods", object, previous: pod(named(name), given) }, CALLERS[who]);
    },
  ],
  [
    /^(\w+) scales (prepared )?(\S+) to (\d+)$/,
    ({ oracle }, [who = "", how, zone = "", replicas]) => {
      const previous = how === undefined ? undefined : set(named(zone), 3, TO_PREPARE);
      oracle.onEvent(ofSet(set(named(zone), Number(replicas)), previous), CALLERS[who]);
    },
  ],
  [
    /^somebody writes (\S+)$/,
    ({ oracle }, [zone = ""]) => oracle.onEvent(ofSet(set(named(zone), 2, SHRUNK), set(named(zone), 2, SHRUNK)), HUMAN),
  ],
  [
    /^somebody writes over (\S+)$/,
    ({ oracle }, [zone = ""]) => oracle.onEvent(ofSet(set(named(zone), 2), set(named(zone), 2, SHRUNK)), HUMAN),
  ],
  [
    /^somebody deletes (\S+)$/,
    ({ oracle }, [zone = ""]) => oracle.onEvent({ ...ofSet(set(named(zone), 2)), type: "DELETED" }, HUMAN),
  ],
];

function play(shape: Partial<Shape>, history: string): string {
  const played = new Played(shape);
  for (const line of history.split(", ")) {
    const [found, words] = HAPPENINGS.flatMap(([pattern, happen]) => {
      const match = pattern.exec(line);
      return match ? ([happen, match.slice(1)] as const) : [];
    });
    if (typeof found !== "function" || !Array.isArray(words)) assert.fail(line);
    found(played, words);
  }
  return played.violations.join("; ");
}

/** `what happens {shape} | history | the violation, if it must be condemned`; a line that is indented goes on. */
const CASES = `
  two downscales too soon {secondsBetween: 180} | reconciler scales a to 2, reconciler scales b to 2
    | ingester-zone-b to 2 0 ms after ingester-zone-a was scaled
  two downscales without a time between them | reconciler scales a to 2, reconciler scales b to 2
  two downscales of one zone {secondsBetween: 180} | reconciler scales a to 2, reconciler scales a to 1
  a downscale after one that somebody wrote around {secondsBetween: 180}
    | reconciler scales a to 2, somebody writes a, reconciler scales b to 2 | after ingester-zone-a was scaled down
  a downscale after one that somebody wrote over {secondsBetween: 180}
    | reconciler scales a to 2, somebody writes over a, reconciler scales b to 2
  a downscale after one of a zone that is gone {secondsBetween: 180}
    | reconciler scales a to 2, somebody deletes a, reconciler scales b to 2
  a downscale within the times of both zones
    {secondsBetween: 90, minTimes: {ingester-zone-a: 600, ingester-zone-b: 600}}
    | reconciler scales a to 2, later, reconciler scales b to 2 | to 2 240000 ms after ingester-zone-a
  a downscale after the shorter of them {secondsBetween: 90, minTimes: {ingester-zone-a: 600, ingester-zone-b: 90}}
    | reconciler scales a to 2, later, reconciler scales b to 2
  two zones by the reconciler | reconciler takes a-0, reconciler takes b-0 | two zones
  an eviction beside a rollout | reconciler takes a-0, drainer takes b-1 | two zones
  evictions in two zones | drainer takes a-0, drainer takes b-0 | ^two zones at once
  two pods of a zone, one allowed | drainer takes a-0, reconciler takes a-1 | 2 pods of
  a downscale beside an eviction | drainer takes a-0, reconciler scales b to 1 | two zones
  two pods of a zone, two allowed {maxUnavailable: 2} | reconciler takes a-0, reconciler takes a-1
  one zone after the other | reconciler takes a-0, a-0 is back, reconciler takes b-0
  what a human deletes | human takes a-0, reconciler takes b-0
  a pod that was not ready | reconciler takes unready a-0, reconciler takes b-0
  a pod that is not wanted any more | reconciler takes a-2, human scales a to 2, reconciler takes b-0
  evictions of one ordinal, by partition {partitioned: true} | drainer takes a-0, drainer takes b-0 | two zones
  the same, two allowed by partition {partitioned: true, budget: 2} | drainer takes a-0, drainer takes b-0
  evictions of two ordinals, by partition {partitioned: true} | drainer takes a-0, drainer takes b-1
  two zones by the reconciler, by partition {partitioned: true} | reconciler takes a-0, reconciler takes b-1 | two zones
  more pods than a budget in percent allows, rounded down {percent: 67, budget: 1}
    | drainer takes a-0, drainer takes a-1, drainer takes a-2 | 3 pods of ingester-zone-a at once, 2 are allowed
  two zones whose pods begin at a later ordinal {firstOrdinal: 2} | reconciler takes a-2, reconciler takes b-4
    | two zones at once
  pods of the same names in another namespace | reconciler takes a-0, reconciler takes elsewhere b-0
  evictions that no budget selects {budget: null} | drainer takes a-0, drainer takes b-0
  an eviction under a budget that is long invalid | the budget is broken, later, drainer takes a-0
    | zone-a-0 is evicted although its budget has long been invalid
  an eviction under a budget that has become invalid | the budget is broken, drainer takes a-0
  evictions after the budget was deleted | the budget is deleted, later, drainer takes a-0, drainer takes b-0
  evictions under a new budget | the budget is deleted, the budget is made, drainer takes a-0, drainer takes b-0
  evictions under one that has been there
    | the budget is deleted, the budget is made, later, drainer takes a-0, drainer takes b-0 | two zones
  a pod that is taken without a reservation | nothing is reserved, reconciler takes a-0
    | zone-a-0 is taken by reconciler-1 without a reservation
  one for which another is reserved | only a-1 is reserved, drainer takes a-0 | without a reservation
  one that is reserved | only a-0 is reserved, drainer takes a-0
  one that a human takes | nothing is reserved, human takes a-0
  a downscale for which a pod is reserved | only a-0 is reserved, reconciler scales a to 2
    | scales ingester-zone-a to 2 without a reservation
  a downscale that is reserved | only a/1 is reserved, reconciler scales a to 2
  one that is taken once the budget was mended
    | nothing is reserved, later, the budget is broken, the budget is made, reconciler takes a-0
  one that is taken long after that
    | nothing is reserved, the budget is broken, the budget is made, later, reconciler takes a-0
    | without a reservation
  a downscale beside a pod that has not come up | reconciler takes a-0, later, reconciler scales b to 2
    | scales ingester-zone-b to 2 while ingester-zone-a-0 are missing
  a downscale five minutes after it | reconciler takes a-0, later, later, reconciler scales b to 2
  a downscale whose pods were not prepared {prepared: true} | human scales prepared a to 2
    | ingester-zone-a-2 was not prepared
  a downscale whose pods were {prepared: true} | a-2 is prepared, human scales prepared a to 2
  a downscale of a zone without the label {prepared: true} | human scales a to 2
  a downscale that its pods have known for long enough {mirrored: {delayMs: 120000}} | reconciler scales a to 2
  a downscale that one of them has not {mirrored: {delayMs: 120000}} | reconciler scales a to 1
    | zone-a-1 has known it for 30000 ms instead of 120000$
  a downscale that none of them knows {mirrored: {delayMs: 120000}} | reconciler scales b to 2
    | zone-b-2 has known it for 0 ms
  one by a human {mirrored: {delayMs: 120000}} | human scales b to 2
  one that was long on its way {mirrored: {delayMs: 120000}} | latecomer scales b to 2
  one without a delay {mirrored: {delayMs: 0}} | reconciler scales b to 2
  a renewal after which a webhook is not trusted {certificate: {spentMinutes: 39}}
    | a webhook is trusted, a webhook is not | a renewal of the certificate has broken /a
  a webhook that was not trusted before {certificate: {spentMinutes: 39}} | a webhook is not, a webhook is trusted
  a Secret that people delete {certificate: {spentMinutes: 39}}
    | a webhook is trusted, the Secret is deleted, a webhook is trusted, a webhook is not
  a renewal long after that {certificate: {spentMinutes: 39}}
    | a webhook is trusted, the Secret is deleted, later, a webhook is trusted, a webhook is not | has broken
  a Secret that is made anew {certificate: {spentMinutes: 39}}
    | a webhook is trusted, the Secret is deleted, later, a webhook is trusted, the Secret is made, a webhook is not
  a certificate that may expire before a job runs {certificate: {spentMinutes: 58}} | a webhook is trusted, a webhook is not
  evictions under Ignore that a webhook allowed {ignore: true}
    | a webhook lets a-0 go, drainer takes a-0, a webhook lets b-0 go, drainer takes b-0 | ^two zones
  evictions under Ignore that none was asked about {ignore: true} | drainer takes a-0, drainer takes b-0
  a downscale under Ignore that a webhook allowed {ignore: true, prepared: true, secondsBetween: 180}
    | a-2 is prepared, a webhook lets a go, human scales prepared a to 2, reconciler scales b to 2
    | ingester-zone-b to 2 0 ms after ingester-zone-a
  one that none was asked about {ignore: true, prepared: true, secondsBetween: 180}
    | a-2 is prepared, human scales prepared a to 2, reconciler scales b to 2
`;

describe("the oracle of safety", () => {
  for (const row of CASES.replaceAll(/\n {4,}/g, " ")
    .trim()
    .split("\n")) {
    const [scene = "", history = "", violation] = row.split(" | ").map((cell) => cell.trim());
    const [, name = "", shape = "{}"] = /^(.*?)(?: (\{.*\}))?$/.exec(scene) ?? [];
    it(`${violation === undefined ? "accepts" : "condemns"} ${name}`, () => {
      const { budget = SHAPE.budget, ...given } = parse(shape) as Partial<Shape>;
      const found = play({ ...given, budget: budget ?? undefined }, history);
      assert.match(found, violation === undefined ? /^$/ : new RegExp(violation));
      assert.doesNotMatch(found, /;/, "one violation");
    });
  }

  const judge = (shape: Partial<Shape>, happen: (played: Played) => void): string => {
    const played = new Played(shape);
    happen(played);
    return played.violations.join();
  };

  it("condemns an eviction that is allowed for whatever pod has the name", () => {
    const allow = (name: string, deleteOptions: object, patch: object): string =>
      judge({}, (played) => {
        const encoded = Buffer.from(JSON.stringify(patch)).toString("base64");
        played.review(
          EVICTION,
          { uid: "u", name, object: { deleteOptions } },
          { uid: "u", allowed: true, patch: encoded },
        );
      });
    assert.match(allow(`${A}-0`, {}, []), /zone-a-0 is allowed for whatever pod has its name/);
    assert.equal(allow(`${A}-0`, {}, [{ value: { uid: "x" } }]), "");
    assert.equal(allow(`${A}-0`, { preconditions: { uid: "x" } }, []), "");
    assert.equal(allow("other-0", {}, []), "");
  });

  it("condemns a webhook that answers 5xx, late, or another request", () => {
    const told = (uid: string, how = {}): string =>
      judge({}, (played) => played.review(EVICTION, { uid: "a" }, { uid }, how));
    assert.equal(told("a"), "");
    assert.match(told("b"), /another request/);
    assert.match(told("a", { status: 500 }), /answers 500/);
    assert.match(told("a", { lateMs: 1 }), /1 ms after its deadline/);
  });

  it("condemns a reconciler that takes a pod which no StatefulSet controls", () => {
    const deleted = (app: string, ownerReferences: object[]): string => {
      const [metadata, name] = [{ labels: { app }, ownerReferences }, `${A}-debug`];
      const object = pod(name, { metadata: { ...metadata, ...ending } });
      const event: StoreEvent = { type: "MODIFIED", resource: "pods", object, previous: pod(name, { metadata }) };
      return judge({}, ({ oracle }) => oracle.onEvent(event, CALLERS["reconciler"]));
    };
    assert.match(deleted(GROUP, []), /takes ingester-zone-a-debug, which no StatefulSet controls/);
    assert.equal(deleted(GROUP, [{ uid: "a" }]), "");
    assert.equal(deleted("other", []), "");
  });

  it("condemns a call to what is no host of a pod", () => {
    const called = (host: string): string =>
      judge({}, ({ oracle }) => oracle.onSent({ actor: "reconciler-1", call: `POST http://${host}/prepare` }));
    assert.equal(called(`${A}-0.${A}.zonewise.svc.cluster.local.:80`), "");
    assert.equal(called("prometheus:9090"), "");
    assert.match(called(`${A}-0.elsewhere.example.zonewise.svc.cluster.local.`), /which is no host of a pod/);
  });

  it("condemns a zone that shrinks against its label, or whose first pods go unprepared", () => {
    const changed = (metadata: object, spec: object, call = HUMAN.call): string => {
      const before = set(A, 3, metadata);
      const event = ofSet({ ...before, spec: { replicas: 3, ...spec } }, before);
      return judge({ downscales: { asOriginal: true } }, ({ oracle }) => oracle.onEvent(event, { ...HUMAN, call }));
    };
    const pinned = { labels: { "grafana.com/no-downscale": "true" } };
    assert.match(changed(pinned, { replicas: 2 }), /must not shrink by its label/);
    assert.equal(changed(pinned, { replicas: 2 }, "PATCH statefulsets/x/scale"), "");
    assert.equal(changed({}, { replicas: 2 }), "");
    assert.match(changed(TO_PREPARE, { ordinals: { start: 1 } }), /first ordinal 1: its pods are not prepared/);
    assert.equal(changed({}, { ordinals: { start: 1 } }), "");
  });
});
