/** Gates that are edited, or wrong. */
import assert from "node:assert/strict";
import { failure } from "../../../prometheus/scripted.ts";
import { deploy, tickOnce } from "../../stage.ts";
import type { Cluster } from "../../../../infra/kubernetes/cluster.ts";
import { type GateScene, conditionOf, installGates, onCluster, statusOf, writeGate, zonesBegun } from "./stage.ts";

const A = "ingester-zone-a";

onCluster("gates write nothing if they were edited meanwhile, and judge again", async (gates) => {
  const { stage, prometheus, cluster, seen } = gates;
  writeGate(gates);
  await gates.tick(cluster, 2);
  deploy(stage, "x:2");
  let edits = 0;
  prometheus.answer = () => {
    if (edits++ < 3) writeGate(gates, {}, { periodSeconds: edits + 1 });
    return 0;
  };
  await gates.tick(cluster, 12, () => edits === 3);
  assert.deepEqual(statusOf(gates).stages[0]?.checks ?? [], []);
  await gates.tick(cluster, 120, () => seen.deleted.length === 9);
  assert.equal(seen.deleted.length, 9);
});

onCluster(
  "gates forget the results of an edited query also in a tick that does not reach their group, or finds no zones of it",
  async (gates) => {
    const { stage, prometheus, cluster } = gates;
    const successes = (): unknown => statusOf(gates).stages[0]?.checks[0]?.["consecutiveSuccesses"];
    writeGate(gates, {}, { successThreshold: 30 });
    await gates.tick(cluster, 2);
    deploy(stage, "x:2");
    for (const [group, reason, kept] of [
      ["ingester", "Valid", 10],
      ["other", "GroupNotFound", undefined],
    ] as const) {
      writeGate(gates, {}, { successThreshold: 30 });
      await gates.tick(cluster, 60, () => successes() === 10);
      const edited = { successThreshold: 10, successWhen: "Data", query: { expr: "up == 1", url: prometheus.url } };
      writeGate(gates, { group }, edited);
      await tickOnce(stage, cluster, { ...gates.checking(cluster), stop: AbortSignal.abort() });
      assert.deepEqual([conditionOf(gates, "Valid")?.reason, successes()], [reason, kept]);
      writeGate(gates, {}, edited);
      await gates.tick(cluster, 20);
      assert.deepEqual([zonesBegun(gates), successes()], [A, 0]);
    }
  },
);

onCluster("gates say what is wrong with an expression or a group, once a change", async (gates) => {
  const { cluster, prometheus } = gates;
  prometheus.answer = () => ({ status: 400, body: failure("1:4: parse error: unexpected end of input") });
  writeGate(gates, {}, { query: { expr: "up{", url: prometheus.url } });
  await gates.tick(cluster, 3);
  assert.deepEqual(
    [conditionOf(gates, "Valid")?.status, conditionOf(gates, "Valid")?.message],
    ["False", "check errors: BadQuery: 1:4: parse error: unexpected end of input (400)"],
  );
  writeGate(gates, { group: "other" });
  await gates.tick(cluster, 3);
  assert.equal(conditionOf(gates, "Valid")?.reason, "GroupNotFound");
  prometheus.answer = () => 0;
  writeGate(gates);
  await gates.tick(cluster, 3);
  assert.equal(conditionOf(gates, "Valid")?.status, "True");
  assert.deepEqual(
    gates.events.map(({ reason }) => reason),
    ["GateInvalid", "GateInvalid"],
  );
});

const bypassIsWrittenOnce = async (gates: GateScene): Promise<void> => {
  const { stage, cluster } = gates;
  installGates(stage, "bypasses");
  writeGate(gates);
  const written: string[] = [];
  const counting: Cluster = {
    ...cluster,
    change: (resource, target, call) => {
      if (resource.plural === "rolloutgates") written.push(JSON.stringify(target.body));
      return cluster.change(resource, target, call);
    },
  };
  const process = gates.checking(counting);
  const tick = async (): Promise<number> => {
    const before = written.length;
    await tickOnce(stage, counting, process);
    await stage.time.advance(1000);
    return written.length - before;
  };
  await tick();
  await tick();
  const until = new Date(stage.time.now() + 3_600_000).toISOString();
  const { store } = stage.emulator;
  const zone = store.get("statefulsets.apps", "default", A) ?? assert.fail();
  const annotations = { "zonewise.dev/bypass-gates-until": until };
  store.update("statefulsets.apps", { ...zone, metadata: { ...zone.metadata, annotations } });
  const counts = [await tick(), await tick(), await tick(), await tick()];
  assert.match(written.at(-1) ?? "", /bypasses/);
  assert.equal(statusOf(gates)["bypasses" as never], undefined);
  assert.deepEqual(counts, [1, 0, 0, 0]);
};
onCluster("a bypass is written once where the definition of an earlier version does not keep it", bypassIsWrittenOnce, {
  crd: false,
});
