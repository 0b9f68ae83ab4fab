/** The downscale Lease of a group while the reconciler scales one of its zones down. */
import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import type { AdmissionRequest, Answer } from "../../../../functions/http/webhook.ts";
import type { Cluster } from "../../../../infra/kubernetes/cluster.ts";
import type { Lease, StatefulSet } from "../../../../infra/kubernetes/resources.ts";
import { keepingLog, reviewOf, startPrepareDownscale } from "../../../functions/stage.ts";
import type { Effect } from "../../../emulator/faults.ts";
import type { KubeObject } from "../../../emulator/objects.ts";
import { hold } from "../../../../reconciler/model/decision.ts";
import { MIRROR, mirrorStage, type MirrorStage, type MirrorZone } from "../mirror-stage.ts";
import { nameLease } from "../../../../reconciler/downscale/act/downscale-lease.ts";
import type { Stage } from "../../stage.ts";
import { add } from "../../../builders/objects.ts";

const JUDGED = {
  labels: { "grafana.com/prepare-downscale": "true" },
  annotations: {
    "grafana.com/prepare-downscale-http-path": "prepare",
    "grafana.com/prepare-downscale-http-port": "80",
  },
};

/** Zone a mirrors a resource that wants `wanted` replicas, zone b is left alone; both have 3. */
async function set(t: TestContext, wanted: number, zoneA: Partial<MirrorZone> = {}): Promise<MirrorStage> {
  const on = await mirrorStage();
  t.after(() => on.stage.close());
  await on.reference(wanted);
  await on.zones(
    { replicas: 3, ...zoneA, annotations: { ...MIRROR, ...zoneA.annotations } },
    { replicas: 3, ...JUDGED },
  );
  return on;
}

/** A dry run, and the write. */
const DOWNSCALE = ["PATCH statefulsets", "PATCH statefulsets"];

/** The next write to a StatefulSet has this effect; dry runs succeed. */
const failWrite = ({ stage }: MirrorStage, effect: Effect): void =>
  void stage.emulator.faults.inject({ effect, verb: "patch", resource: "statefulsets.apps", dryRun: false, times: 1 });

const replicas = ({ stage }: MirrorStage): unknown[] =>
  stage.emulator.store
    .list("statefulsets.apps", "default")
    .map((object) => (object as unknown as StatefulSet).spec?.replicas);

/** The holder of the group's Lease, "" if it is free, undefined without a Lease. */
function holderOf({ stage }: MirrorStage): string | undefined {
  const [lease] = stage.emulator.store.list("leases.coordination.k8s.io", "default");
  return (lease as Lease | undefined)?.spec?.holderIdentity ?? undefined;
}

/** A pass, and its writes of Leases and StatefulSets in order. */
async function passAndWrites(on: MirrorStage) {
  const { cluster, calls } = on.stage.connect();
  const { outcome, waits } = await on.pass(undefined, cluster);
  const writes = calls.filter((call) => !call.startsWith("GET") && /leases|statefulsets/.test(call));
  return { outcome, waits, writes: writes.map((call) => call.replace(/ (?:\S+\/)+(\w+) \w+$/, " $1")) };
}

/** The answer of a webhook process, whose pods confirm every preparation. */
async function judge({ connect, clock }: Stage, request: AdmissionRequest): Promise<Answer> {
  const { cluster } = connect();
  const webhook = startPrepareDownscale({ cluster, clock });
  const { signal } = new AbortController();
  return await webhook.handle(request, {
    path: "",
    signal,
    deadlineAt: clock.monotonic() + 9000,
    log: keepingLog().log,
  });
}

describe("a zone that shrinks without the label prepare-downscale", () => {
  it("does not shrink together with a zone whose downscale a webhook judges between the last read and the write", async (t) => {
    const on = await set(t, 2);
    const { store } = on.stage.emulator;
    const zone = store.get("statefulsets.apps", "default", "ingester-zone-b") as unknown as StatefulSet;
    const { cluster } = on.stage.connect();
    const answers: Answer[] = [];
    const interrupted: Cluster = {
      ...cluster,
      async change(resource, patch, call) {
        if (patch.dryRun) return await cluster.change(resource, patch, call);
        const answer = await judge(on.stage, reviewOf(zone, 2));
        answers.push(answer);
        if (answer.allowed)
          store.update("statefulsets.apps", { ...zone, spec: { ...zone.spec, replicas: 2 } } as unknown as KubeObject);
        return await cluster.change(resource, patch, call);
      },
    };
    await on.pass(undefined, interrupted);
    assert.deepEqual(replicas(on), [2, 3]);
    assert.match(
      answers[0]?.message ?? "",
      /because statefulset ingester-zone-a is already in process of updating replicas$/,
    );
  });

  it("does so under the Lease of its group, which is free again after the write", async (t) => {
    const on = await set(t, 2);
    const { writes } = await passAndWrites(on);
    assert.deepEqual(writes, ["POST leases", ...DOWNSCALE, "PUT leases"]);
    assert.equal(holderOf(on), "");
  });

  it("waits while the Lease is held for another zone, and writes nothing", async (t) => {
    const on = await set(t, 2);
    const renewTime = new Date(on.stage.time.now()).toISOString();
    add(on.stage.emulator.store, "Lease", nameLease("ingester", ""), {
      annotations: { statefulset: "ingester-zone-b" },
      spec: { holderIdentity: "other", leaseDurationSeconds: 13, renewTime },
    });
    const held = await passAndWrites(on);
    const message = "ingester-zone-a waits to shrink: the downscale Lease of its group is held for ingester-zone-b";
    assert.partialDeepStrictEqual(held.outcome.scalingHolds, [{ reason: "OtherZoneNotReady", message }]);
    assert.deepEqual(held.writes, []);
    await on.stage.time.advance(18_000);
    await on.pass();
    assert.deepEqual(replicas(on), [2, 3]);
  });

  it("takes no Lease while another zone loses pods", async (t) => {
    const on = await set(t, 2);
    on.stage.emulator.store.remove("pods", "default", "ingester-zone-b-0");
    const { waits, writes } = await passAndWrites(on);
    assert.deepEqual([waits, writes, holderOf(on)], [["OtherZoneNotReady"], [], undefined]);
  });

  const REFUSED: readonly [string, Effect][] = [
    ["refused", { kind: "tooMany", retryAfterSeconds: 60 }],
    ["in conflict with another", { kind: "conflict" }],
  ];
  for (const [name, effect] of REFUSED)
    it(`leaves the Lease free after a write that is ${name}`, async (t) => {
      const on = await set(t, 2);
      failWrite(on, effect);
      await on.pass();
      assert.deepEqual([replicas(on), holderOf(on)], [[3, 3], ""]);
    });

  it("leaves the Lease to expire after a write without an answer, which may still take effect", async (t) => {
    const on = await set(t, 2);
    failWrite(on, { kind: "dropBefore" });
    await on.pass();
    assert.match(holderOf(on) ?? "", /^reconciler_/);
    assert.deepEqual((await on.pass()).waits, ["OtherZoneNotReady"]);
    await on.stage.time.advance(15_000);
    await on.pass();
    assert.deepEqual([replicas(on), holderOf(on)], [[2, 3], ""]);
  });

  it("waits, as after a refused write, if the Lease cannot be written", async (t) => {
    const on = await set(t, 2);
    on.stage.emulator.faults.inject({
      effect: { kind: "tooMany", retryAfterSeconds: 60 },
      verb: "create",
      resource: "leases.coordination.k8s.io",
    });
    assert.deepEqual((await on.pass()).waits, ["ScaleRefused"]);
    assert.deepEqual(replicas(on), [3, 3]);
  });

  it("takes the Lease for a zone that carries no-downscale as well, as prepare-downscale leaves that to another webhook", async (t) => {
    const on = await set(t, 2, { labels: { ...JUDGED.labels, "grafana.com/no-downscale": "true" } });
    assert.deepEqual((await passAndWrites(on)).writes, ["POST leases", ...DOWNSCALE, "PUT leases"]);
  });
});

describe("the reconciler takes no downscale Lease", () => {
  const CASES: readonly [string, number, Partial<MirrorZone>, number][] = [
    ["for a zone that grows", 4, {}, 4],
    ["for a zone with forced replicas", 3, { annotations: { "grafana.com/rollout-force-replicas": "1" } }, 1],
    ["for a zone whose downscales a webhook judges: it takes the Lease itself", 2, JUDGED, 2],
  ];
  for (const [name, wanted, zone, expected] of CASES)
    it(name, async (t) => {
      const on = await set(t, wanted, zone);
      assert.deepEqual((await passAndWrites(on)).writes, expected > 3 ? ["PATCH statefulsets"] : DOWNSCALE);
      assert.deepEqual([replicas(on), holderOf(on)], [[expected, 3], undefined]);
    });
});

describe("a zone that shrinks asks its budgets", () => {
  it("and does not shrink while one denies it", async (t) => {
    const on = await set(t, 2);
    const { waits } = await on.pass(undefined, undefined, async (zone) => hold("BudgetSpent", "not now", [zone]));
    assert.deepEqual([waits, replicas(on)], [["BudgetSpent"], [3, 3]]);
  });

  for (const [name, effect, released, stored] of [
    ["keeps its reservation with its write", undefined, 0, 2],
    ["gives it back if the write is refused", { kind: "tooMany", retryAfterSeconds: 60 }, 1, 3],
    ["keeps it while a write without an answer may take effect", { kind: "dropBefore" }, 0, 3],
  ] as const)
    it(name, async (t) => {
      const on = await set(t, 2);
      if (effect) failWrite(on, effect);
      let count = 0;
      await on.pass(undefined, undefined, async () => ({ action: "grant", release: async () => void count++ }));
      assert.deepEqual([count, replicas(on)], [released, [stored, 3]]);
    });
});
