/** The early end of a batch of deletions, from the tick to the pods. */
import type { DisruptionGrant, MayDisrupt } from "../../../../reconciler/budget/act/may-disrupt.ts";
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import type { Cluster } from "../../../../infra/kubernetes/cluster.ts";
import { hasCode, RolloutError } from "../../../../infra/errors.ts";
import { hold } from "../../../../reconciler/model/decision.ts";
import { deploy, setReady, setStage, type Stage, tickOnce } from "../../stage.ts";
import { witness, type Witness } from "../../witness.ts";
import { amend } from "../../../builders/objects.ts";

const [A, B] = ["ingester-zone-a", "ingester-zone-b"];

let stage: Stage;
let seen: Witness;
let stop: AbortController;

/** Three zones of four pods with a new image, all of which may be unavailable at once. */
beforeEach(async () => {
  stage = await setStage();
  stop = new AbortController();
  deploy(stage, "x:1", { replicas: 4, isBound: true, annotations: { "rollout-max-unavailable": "100%" } });
  await stage.time.advance(3000);
  deploy(stage, "x:2", { replicas: 4, isBound: true });
  await stage.time.advance(500);
  seen = witness(stage, 4);
});
afterEach(() => stage.close());

function change(name: string, metadata: object): void {
  amend(stage.emulator.store, "StatefulSet", name, { metadata });
}

/** A connection that runs `happen` right after the first deletion, and gives the cluster a moment to follow. */
function afterFirst(happen: () => void): { cluster: Cluster; calls: string[] } {
  const { cluster, calls } = stage.connect();
  let removed = 0;
  return {
    calls,
    cluster: {
      ...cluster,
      remove: async (...call) => {
        const version = await cluster.remove(...call);
        if (++removed === 1) happen();
        await stage.time.advance(10);
        return version;
      },
    },
  };
}

/** Grants, and the pods whose grants were requested and released. */
function grants(denied: readonly string[] = []): { mayDisrupt: MayDisrupt; requested: string[]; released: string[] } {
  const [requested, released]: [string[], string[]] = [[], []];
  return {
    requested,
    released,
    mayDisrupt: async (pod, zone) => {
      requested.push(pod.name);
      if (denied.includes(pod.name)) return hold("BudgetSpent", `${pod.name} stays`, [zone]);
      return { action: "grant", release: async () => void released.push(pod.name) } satisfies DisruptionGrant;
    },
  };
}

const PODS = [0, 1, 2, 3].map((i) => `${A}-${i}`);

describe("a batch of deletions", () => {
  const ENDS: readonly [name: string, happen: () => void, why: RegExp][] = [
    [
      "its zone is paused",
      () => change(A, { annotations: { "grafana.com/rollout-paused": "true" } }),
      /zone-a was paused/,
    ],
    [
      "another zone leaves the group",
      () => change(B, { labels: { "rollout-group": "other" } }),
      /other zones than before/,
    ],
    ["a pod of another zone fails", () => setReady(stage, `${B}-1`, false), /zone-b is no longer healthy/],
    [
      "a pod of another zone is deleted, and still serves",
      () => stage.emulator.store.remove("pods", "default", `${B}-1`),
      /^ingester-zone-b-1: terminating$/,
    ],
    ["the process is stopped", () => stop.abort(), /^stopped$/],
  ];
  for (const [name, happen, why] of ENDS) {
    it(`ends once ${name}; what was done is reported, and the other grants are released`, async () => {
      const { mayDisrupt, requested, released } = grants();
      const { cluster } = afterFirst(happen);
      const { outcomes } = await tickOnce(stage, cluster, { mayDisrupt, stop: stop.signal });
      const outcome = outcomes.find(({ group }) => group === "ingester");
      assert.ok(outcome?.state === "acted");
      assert.deepEqual(
        seen.deleted.filter((pod) => pod.startsWith(A ?? "")),
        PODS.slice(0, 1),
      );
      assert.match(outcome.effect.stopped ?? "", why);
      assert.deepEqual(
        outcome.effect.replaced.map((pod) => pod.name),
        PODS.slice(0, 1),
      );
      assert.deepEqual([requested, released], [PODS, PODS.slice(1)]);
    });
  }

  for (const when of ["the budget request", "the zone check"])
    it(`checks again first if ${when} takes long: a pod of another zone that failed in the meantime stops it before the first pod`, async () => {
      const fail = async (): Promise<void> => {
        setReady(stage, `${B}-1`, false);
        await stage.time.advance(8000);
      };
      const { mayDisrupt, requested, released } = grants();
      const { cluster } = stage.connect();
      const { outcomes } = await tickOnce(
        stage,
        { ...cluster, patch: async (...call) => (when === "the zone check" && (await fail()), cluster.patch(...call)) },
        {
          mayDisrupt: async (...pod) => (
            when === "the budget request" && requested.length === 0 && (await fail()),
            mayDisrupt(...pod)
          ),
        },
      );
      const [outcome] = outcomes;
      assert.match(outcome?.state === "superseded" ? String(outcome.error) : "", /zone-b is no longer healthy/);
      assert.deepEqual([seen.deleted, requested.length, released.length], [[], 4, 4]);
    });

  /** A connection that runs `happen` right before the zone is confirmed, until it has done so for `times`. */
  function beforeConfirmed(happen: () => void, times: number): { cluster: Cluster; calls: string[] } {
    const { cluster, calls } = stage.connect();
    let left = times;
    return {
      calls,
      cluster: { ...cluster, patch: async (...call) => (left-- > 0 && happen(), cluster.patch(...call)) },
    };
  }

  let written = 0;
  /** As the StatefulSet controller does while pods of the zone come and go. */
  const writeStatus = (): void =>
    amend(stage.emulator.store, "StatefulSet", A, { status: { availableReplicas: ++written } });

  it("is judged again at once if the status of its zone changes before the first pod", async () => {
    const { mayDisrupt, released } = grants();
    const { cluster, calls } = beforeConfirmed(writeStatus, 2);
    const { outcomes } = await tickOnce(stage, cluster, { mayDisrupt });
    assert.deepEqual([outcomes[0]?.state, seen.deleted, seen.violations, released], ["acted", PODS, [], []]);
    const count = (call: string): number => calls.filter((one) => one === call).length;
    assert.deepEqual(
      [count("GET apps/v1/statefulsets collection"), count("GET core/v1/pods collection")],
      [1 + 2 + 3, 1 + 2],
      "two lists for each change, and one before each pod but the first",
    );
  });

  const CHANGES: readonly [name: string, happen: () => void, why: RegExp][] = [
    [
      "is paused",
      () => change(A ?? "", { annotations: { "grafana.com/rollout-paused": "true" } }),
      /zone-a was paused/,
    ],
    ["is changed each time that it is confirmed", writeStatus, /conflict/i],
  ];
  for (const [name, happen, why] of CHANGES)
    it(`does not begin if its zone ${name} before the first pod`, async () => {
      const { mayDisrupt, released } = grants();
      const { cluster } = beforeConfirmed(happen, 3);
      const { outcomes } = await tickOnce(stage, cluster, { mayDisrupt });
      const [outcome] = outcomes;
      assert.match(outcome?.state === "superseded" ? String(outcome.error) : "", why);
      assert.deepEqual([seen.deleted, released], [[], PODS]);
    });

  it("does not begin if its zone loses a pod that its status still counts before the first pod", async () => {
    const { mayDisrupt, released } = grants();
    const { cluster } = beforeConfirmed(() => {
      stage.emulator.store.remove("pods", "default", `${A}-3`);
      writeStatus();
    }, 1);
    const { outcomes } = await tickOnce(stage, cluster, { mayDisrupt });
    const [outcome] = outcomes;
    const why = outcome?.state === "superseded" ? String(outcome.error) : "";
    assert.match(why, /zone-a has 1 unavailable pods now/);
    assert.deepEqual([seen.deleted, released], [[`${A}-3`], PODS]);
  });

  it("ends once other failed pods of its zone use up the maximum unavailable", async () => {
    change(A ?? "", { annotations: { "rollout-max-unavailable": "2" } });
    await stage.time.advance(500);
    const { cluster } = afterFirst(() => [2, 3].forEach((i) => setReady(stage, `${A}-${i}`, false)));
    const { outcomes } = await tickOnce(stage, cluster);
    assert.deepEqual(seen.deleted, PODS.slice(0, 1));
    assert.match(
      (outcomes[0]?.state === "acted" && outcomes[0].effect.stopped) || "",
      /zone-a has 2 unavailable pods already/,
    );
  });

  it("ends long before its reservations do", async () => {
    const { mayDisrupt, released } = grants();
    const { cluster } = afterFirst(() => {});
    let at = 0;
    const { outcomes } = await tickOnce(stage, cluster, { mayDisrupt, monotonic: () => (at += 9000) });
    assert.ok(seen.deleted.length > 0 && seen.deleted.length < 4);
    assert.deepEqual(released, PODS.slice(seen.deleted.length));
    assert.match((outcomes[0]?.state === "acted" && outcomes[0].effect.stopped) || "", /the batch has taken 30 s/);
  });

  it("continues to its end if nothing changes, with one list of StatefulSets per further pod", async () => {
    const { mayDisrupt, released } = grants();
    const { cluster, calls } = afterFirst(() => {});
    const { outcomes } = await tickOnce(stage, cluster, { mayDisrupt });
    assert.deepEqual([seen.deleted, seen.violations, released], [PODS, [], []]);
    assert.equal(outcomes[0]?.state === "acted" && outcomes[0].effect.stopped, undefined);
    const count = (call: string): number => calls.filter((one) => one === call).length;
    assert.deepEqual(
      [count("GET apps/v1/statefulsets collection"), count("GET core/v1/pods collection"), calls.length],
      [1 + 3, 1, 1 + 3 + 1 + 1 + 4],
      "the tick's list and one of its pods, one list before each pod but the first, one check of the zone, the deletions",
    );
  });

  it("requests all pods before the first deletion, and skips the denied ones", async () => {
    const { mayDisrupt, released } = grants([`${A}-0`, `${A}-2`]);
    await tickOnce(stage, stage.connect().cluster, { mayDisrupt });
    assert.deepEqual([seen.deleted, released], [[`${A}-1`, `${A}-3`], []]);
  });

  it("that cannot request one of its pods deletes none", async () => {
    const { mayDisrupt, released } = grants();
    const { outcomes } = await tickOnce(stage, stage.connect().cluster, {
      mayDisrupt: (pod, ...rest) =>
        pod.name === `${A}-2` ? Promise.reject(new Error("no answer")) : mayDisrupt(pod, ...rest),
    });
    assert.equal(outcomes[0]?.state, "failed");
    assert.deepEqual([seen.deleted, released], [[], [`${A}-0`, `${A}-1`, `${A}-3`]]);
  });

  const ERRORS: readonly [
    code: "Conflict" | "Forbidden" | "WebhookFailed" | "Timeout" | "ServerError",
    releases: boolean,
  ][] = [
    ["Conflict", true],
    ["Forbidden", true],
    ["WebhookFailed", true],
    ["Timeout", false],
    ["ServerError", false],
  ];
  for (const [code, releases] of ERRORS) {
    it(`ends at a deletion that fails with ${code}, whose grant ${releases ? "is released" : "stays, as the pod may be on its way"}`, async () => {
      const { mayDisrupt, released } = grants();
      const { cluster } = stage.connect();
      await tickOnce(
        stage,
        {
          ...cluster,
          remove: (resource, removal, call) =>
            removal.name === `${A}-1`
              ? Promise.reject(new RolloutError(code, "no"))
              : cluster.remove(resource, removal, call),
        },
        { mayDisrupt },
      );
      assert.deepEqual(
        [seen.deleted, released.toSorted()],
        [PODS.slice(0, 1), releases ? PODS.slice(1) : PODS.slice(2)],
      );
    });
  }

  it("ends under a lost Lease, and leaves the other grants to expire", async () => {
    const { mayDisrupt, released } = grants();
    let lost = false;
    const fence = {
      write: () => {
        if (lost) throw new RolloutError("LeaseLost", "no longer ours");
        return {};
      },
    };
    const { outcomes } = await tickOnce(stage, afterFirst(() => (lost = true)).cluster, { mayDisrupt, fence });
    assert.deepEqual([outcomes[0]?.state, seen.deleted, released], ["acted", PODS.slice(0, 1), []]);
  });
});

it("a zone whose status was not written, as it has changed, is not reported as finished; the next tick finishes it", async () => {
  const [faults, sets] = [stage.emulator.faults, "statefulsets.apps"];
  for (const pod of PODS) stage.emulator.store.remove("pods", "default", pod);
  await stage.time.advance(3000);
  const tick = async () => (await tickOnce(stage, stage.connect().cluster)).outcomes[0] ?? assert.fail();
  const isRecorded = (): boolean => {
    const { status } = stage.emulator.store.get(sets, "default", A) ?? assert.fail();
    const { currentRevision, updateRevision } = status as Record<string, string>;
    return currentRevision === updateRevision;
  };
  faults.inject({ effect: { kind: "conflict" }, resource: sets, verb: "patch", times: 1 });
  const outcome = await tick();
  assert.ok(outcome.state === "superseded" && hasCode(outcome.error, "Conflict"), JSON.stringify(outcome));
  assert.equal(isRecorded(), false);
  const next = await tick();
  assert.equal(isRecorded(), true);
  assert.equal(next.state === "acted" && next.decision.zone.name, "ingester-zone-b");
});
