/** Scaling from the tick to the API server: what is written, beside a rollout, and while others change the group. */
import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import type { Cluster } from "../../../../infra/kubernetes/cluster.ts";
import { RolloutError } from "../../../../infra/errors.ts";
import { errorOfStatus } from "../../../../infra/kubernetes/api-error.ts";
import type { Lease } from "../../../../infra/kubernetes/resources.ts";
import { nameLease, pendingOf } from "../../../../reconciler/downscale/act/downscale-lease.ts";
import { add, amend, make } from "../../../builders/objects.ts";
import { deploy, setStage, tickOnce, type Stage } from "../../stage.ts";
import { witness } from "../../witness.ts";
import { DELAYED, MIRROR, mirrorStage, type MirrorStage } from "../mirror-stage.ts";
import { follows, LAST } from "../scene.ts";

const TWO = { "rollout-max-unavailable": "2" };
const MIN_TIME = "grafana.com/min-time-between-zones-downscale";
const OF_B = ["ingester-zone-b-0", "ingester-zone-b-1"];

/** Zone a leads with 2 replicas, and zones b and c with 3 follow, 12 h apart; then the named zones get a new image. */
async function set(
  t: TestContext,
  { outdated = ["b"], lastDownscale = "", zones = ["b"], labels = { [MIN_TIME]: "12h" } } = {},
) {
  const stage = await setStage();
  t.after(() => stage.close());
  const recorded = lastDownscale && { [LAST]: lastDownscale };
  deploy(stage, "x:1", { zones: ["a"], replicas: 2, annotations: { ...TWO, ...recorded }, labels });
  deploy(stage, "x:1", { zones, annotations: { ...TWO, ...follows("a").annotations }, labels });
  await stage.time.advance(3000);
  const seen = witness(stage, 9);
  for (const zone of outdated) deploy(stage, "x:2", { zones: [zone], replicas: zone === "a" ? 2 : 3 });
  await stage.time.advance(200);
  return { stage, seen };
}

const replicasOf = ({ emulator }: Stage): unknown[] =>
  emulator.store
    .list("statefulsets.apps", "default")
    .map(({ spec }) => (spec as { readonly replicas?: number }).replicas);

/** A connection through which changes that are no dry run are made like this. */
function changing(
  { connect }: Stage,
  change: (direct: Cluster, ...call: Parameters<Cluster["change"]>) => unknown,
): Cluster {
  const { cluster } = connect();
  const altered = (...call: Parameters<Cluster["change"]>) =>
    (call[1].dryRun ? cluster.change(...call) : change(cluster, ...call)) as never;
  return { ...cluster, change: altered };
}

/** A connection that runs `happen` right before its list of StatefulSets of this number. */
function beforeList({ connect }: Stage, number: number, happen: () => void) {
  const { cluster, calls } = connect();
  let lists = 0;
  const late: Cluster = {
    ...cluster,
    async *list(resource, query, call) {
      if (resource.plural === "statefulsets" && ++lists === number) happen();
      yield* cluster.list(resource, query, call);
    },
  };
  return { cluster: late, writes: () => calls.filter((call) => !call.startsWith("GET")) };
}

const reasonsOf = (outcome: { readonly scalingHolds: readonly { readonly reason: string }[] } | undefined) =>
  outcome?.scalingHolds.map(({ reason }) => reason);

describe("scaling and rollout in one tick", () => {
  it("a waiting follower is not scaled, and the rollout continues", async (t) => {
    const { stage, seen } = await set(t, { lastDownscale: "2026-01-01T00:00:00Z" });
    const { cluster, calls } = stage.connect();
    const { outcomes } = await tickOnce(stage, cluster);
    assert.deepEqual(seen.deleted, OF_B);
    assert.deepEqual(reasonsOf(outcomes[0]), ["MinTimeBetweenZones"]);
    assert.deepEqual(replicasOf(stage), [2, 3]);
    assert.ok(!calls.some((call) => /leases/.test(call) && !call.startsWith("GET")));
  });

  it("a follower is scaled by one patch with its version and the time, and nothing is deleted in that pass", async (t) => {
    const { stage, seen } = await set(t);
    const { resourceVersion } =
      stage.emulator.store.get("statefulsets.apps", "default", "ingester-zone-b")?.metadata ?? {};
    const patches: unknown[] = [];
    const noting = changing(stage, (cluster, ...call) => (patches.push(call[1].body), cluster.change(...call)));
    const { outcomes, acted } = await tickOnce(stage, noting);
    const annotations = { [LAST]: `${new Date(stage.time.now()).toISOString().slice(0, 19)}Z` };
    assert.deepEqual(patches, [{ metadata: { resourceVersion, annotations }, spec: { replicas: 2 } }]);
    assert.deepEqual([outcomes[0]?.state, acted, replicasOf(stage), seen.deleted], ["acted", true, [2, 2], []]);
  });

  const message = 'Internal error occurred: failed calling webhook "x": no answer';
  for (const [name, error] of [
    ["is refused", new RolloutError("Forbidden", "denied the request")],
    [
      "needs a webhook that cannot be called",
      errorOfStatus(500, JSON.stringify({ status: "Failure", message, reason: "InternalError" })),
    ],
  ] as const)
    it(`a change that ${name} holds its zone alone, with that message: the rollout continues`, async (t) => {
      const { stage, seen } = await set(t);
      const { outcomes } = await tickOnce(
        stage,
        changing(stage, () => Promise.reject(error)),
      );
      assert.deepEqual([replicasOf(stage), seen.deleted, reasonsOf(outcomes[0])], [[2, 3], OF_B, ["ScaleRefused"]]);
      assert.match(
        outcomes[0]?.scalingHolds[0]?.message ?? "",
        /scaling ingester-zone-b from 3 to 2 replicas.*(denied|no answer)/,
      );
    });

  const LOST: readonly [name: string, error: RolloutError, isDone: boolean][] = [
    ["its answer was lost, but it took effect", new RolloutError("Timeout", "no answer"), true],
    ["its answer was lost, and it did not take effect", new RolloutError("Unreachable", "reset"), false],
    [
      "it may still take effect after a server error",
      new RolloutError("ServerError", "etcdserver: request timed out"),
      false,
    ],
  ];
  for (const [name, error, isDone] of LOST)
    it(`nothing else is done to the group after a change of replicas with an unknown effect: ${name}`, async (t) => {
      // Zone a, not one that is scaled, is the next to lose pods.
      const { stage, seen } = await set(t, { outdated: ["a"], zones: ["b", "c"] });
      const lost = changing(stage, async (cluster, ...call) => {
        if (isDone) await cluster.change(...call);
        throw error;
      });
      const { outcomes } = await tickOnce(stage, lost);
      const expected = ["failed", [], [2, isDone ? 2 : 3, 3]];
      assert.deepEqual([outcomes[0]?.state, seen.deleted, replicasOf(stage)], expected);
    });

  it("a hold on a zone's scaling neither fails the group nor stops its rollout", async (t) => {
    const on = await mirrors(t);
    const unknown = { "grafana.com/rollout-mirror-replicas-from-resource-kind": "Unknown" };
    await on.zones({ replicas: 2, annotations: { ...MIRROR, ...unknown } });
    assert.equal((await on.pass()).outcome.state, "settled");
    deploy(on.stage, "x:2", { zones: ["a"], replicas: 2 });
    await on.stage.time.advance(500);
    const { outcome, waits } = await on.pass();
    assert.deepEqual([outcome.state, waits], ["acted", ["ReferenceUnreadable"]]);
  });
});

async function mirrors(t: TestContext): Promise<MirrorStage> {
  const on = await mirrorStage();
  t.after(() => on.stage.close());
  return on;
}

describe("a zone that is to shrink, while others change its group", () => {
  const amendZone = ({ emulator }: Stage, zone: string, annotations: Record<string, string>): void =>
    amend(emulator.store, "StatefulSet", `ingester-zone-${zone}`, { annotations });

  const CHANGES: readonly [string, happen: (stage: Stage) => void, expected: readonly [string, readonly string[]]][] = [
    ["is not written if it has changed", (stage) => amendZone(stage, "b", { note: "changed" }), ["superseded", []]],
    [
      "is not scaled below a leader that has grown again",
      (stage) => deploy(stage, "x:1", { zones: ["a"], replicas: 3 }),
      ["superseded", []],
    ],
    [
      "waits for another that has shrunk",
      (stage) => amendZone(stage, "a", { [LAST]: new Date(stage.time.now()).toISOString() }),
      ["settled", ["MinTimeBetweenZones", "MinTimeBetweenZones"]],
    ],
  ];
  for (const [name, happen, expected] of CHANGES)
    it(`${name} since it was listed`, async (t) => {
      const { stage } = await set(t, { outdated: [], zones: ["b", "c"] });
      const { cluster, writes } = beforeList(stage, 2, () => happen(stage));
      const { outcomes } = await tickOnce(stage, cluster);
      assert.deepEqual([outcomes[0]?.state, reasonsOf(outcomes[0])], expected);
      assert.deepEqual([replicasOf(stage).slice(1), writes()], [[3, 3], []]);
    });

  it("is read again although the zone before it was: another may have lost a pod meanwhile", async (t) => {
    const on = await mirrors(t);
    await on.reference(1);
    const zone = { replicas: 2, annotations: MIRROR };
    await on.zones(zone, zone, zone);
    const { store } = on.stage.emulator;
    // Zone b is degraded: zone a waits for it, and zone b itself may shrink.
    store.remove("pods", "default", "ingester-zone-b-0");
    const { cluster } = beforeList(on.stage, 3, () => store.remove("pods", "default", "ingester-zone-c-0"));
    const { waits } = await on.pass(undefined, cluster);
    assert.deepEqual(waits, ["OtherZoneNotReady", "OtherZoneNotReady", "OtherZoneNotReady"]);
  });

  it("waits for another whose downscale was admitted and may still be stored, in a group without a leader and a minimum time", async (t) => {
    const on = await mirrors(t);
    await on.reference(2);
    await on.zones({ replicas: 3, annotations: MIRROR }, { replicas: 3 });
    const { store } = on.stage.emulator;
    const { uid, generation } = store.get("statefulsets.apps", "default", "ingester-zone-b")?.metadata ?? {};
    const at = new Date(on.stage.time.now()).toISOString();
    const note = { "ingester-zone-b": { uid, generation, from: 3, to: 2, prepared: { start: 2, end: 3 }, at } };
    add(store, "Lease", nameLease("ingester", "ingester-zone-b"), {
      annotations: { "zonewise/pending-downscales": JSON.stringify(note) },
    });
    const { outcome } = await on.pass();
    assert.deepEqual(replicasOf(on.stage), [3, 3]);
    const message = `ingester-zone-a waits to shrink: the downscale of ingester-zone-b from 3 to 2 replicas, admitted at ${at}, may still be stored`;
    assert.partialDeepStrictEqual(outcome.scalingHolds, [{ reason: "OtherZoneNotReady", message }]);
    await on.stage.time.advance(90_000);
    await on.pass();
    assert.deepEqual(replicasOf(on.stage), [2, 3]);
    const [lease] = store.list("leases.coordination.k8s.io", "default");
    assert.deepEqual(pendingOf(lease as Lease), note);
  });
});

describe("a downscale that the API server accepts and changes", () => {
  /** All changes of replicas, dry runs too, have this effect instead; undefined leaves the replicas as they are. */
  function pinning({ connect }: Stage, replicas: number | undefined): Cluster {
    const { cluster } = connect();
    return {
      ...cluster,
      change: (resource, patch, call) => {
        const { spec: _, ...rest } = patch.body as Record<string, unknown>;
        const body = { ...rest, ...(replicas !== undefined && { spec: { replicas } }) };
        return cluster.change(resource, { ...patch, body }, call);
      },
    };
  }

  it("to another number ends the tick of its group, as the zone may lose pods by it", async (t) => {
    const { stage, seen } = await set(t, { outdated: ["a", "b"], zones: ["b"] });
    deploy(stage, "x:2", { zones: ["b"], replicas: 4 });
    await stage.time.advance(2000);
    const { outcomes } = await tickOnce(stage, pinning(stage, 3));
    await stage.time.advance(100);
    assert.equal(outcomes[0]?.state, "superseded");
    assert.deepEqual([seen.deleted, seen.violations], [["ingester-zone-b-3"], []]);
  });

  for (const [name, replicas, had] of [
    ["nothing", undefined, 3],
    ["an upscale", 5, 5],
  ] as const)
    it(`to ${name} is not written, so that no time stays behind which would keep the other zones from shrinking`, async (t) => {
      const { stage } = await set(t, { outdated: [] });
      const zone = () => stage.emulator.store.get("statefulsets.apps", "default", "ingester-zone-b");
      const before = zone();
      const { outcomes } = await tickOnce(stage, pinning(stage, replicas));
      assert.match(
        outcomes[0]?.scalingHolds[0]?.message ?? "",
        new RegExp(`ingester-zone-b would have ${had} replicas: something pins them`),
      );
      assert.deepEqual(zone(), before);
    });
});

describe("mirroring from pass to pass", () => {
  it("finds a kind that was defined only after its first lookup", async (t) => {
    const on = await mirrors(t);
    const kind = {
      "grafana.com/rollout-mirror-replicas-from-resource-kind": "Late",
      "grafana.com/rollout-mirror-replicas-from-resource-api-version": "late.example/v1",
    };
    await on.zones({ replicas: 2, annotations: { ...MIRROR, ...kind } });
    assert.deepEqual((await on.pass()).waits, ["ReferenceUnreadable"]);
    const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    const { body } = await on.call("GET", `${definitions}/replicatemplates.rollout-operator.grafana.com`);
    const names = { plural: "lates", singular: "late", kind: "Late", listKind: "LateList" };
    const spec = { ...(body as { spec: object }).spec, group: "late.example", names };
    await on.call("POST", definitions, make("CustomResourceDefinition", "lates.late.example", { spec }));
    await on.call("POST", "/apis/late.example/v1/namespaces/default/lates", {
      apiVersion: "late.example/v1",
      kind: "Late",
      metadata: { name: "template" },
      spec: { replicas: 4 },
    });
    assert.deepEqual((await on.pass()).patches, ["statefulsets ingester-zone-a 4", "lates/status template 4"]);
  });

  it("tells pods that stay after all, and shrinks once the delay is over, as its reference changes", async (t) => {
    const on = await mirrors(t);
    await on.reference(3, 5);
    await on.zones({ replicas: 5, annotations: { ...MIRROR, ...DELAYED } });
    const requests: string[][] = [];
    for (const wanted of [3, 5, 4, 5]) {
      await on.reference(wanted);
      requests.push([...(await on.pass(() => ({}))).requests]);
    }
    const stay = (count: number): string[] => Array.from({ length: count }, (_, i) => `DELETE a-${i}`);
    assert.deepEqual(requests, [[...stay(3), "POST a-3", "POST a-4"], stay(5), [...stay(4), "POST a-4"], stay(5)]);
    await on.reference(3);
    const { patches } = await on.pass(() => ({ minutesAgo: 70 }));
    assert.deepEqual(patches, ["statefulsets ingester-zone-a 3", "replicatemplates/status template 3"]);
  });
});
