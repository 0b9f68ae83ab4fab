/** Gates that are edited, or wrong. */
import assert from "node:assert/strict";
import { deploy, setReady, tickOnce } from "../../stage.ts";
import { type GateScene, conditionOf, onCluster, statusOf, writeGate, zonesBegun } from "./stage.ts";

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
    const successes = (): unknown => statusOf(gates).stages[0]?.checks[0]?.consecutiveSuccesses;
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

/** The checking of a process whose answers take 1.5 s; `meanwhile` happens before they are there. */
function answerLate(gates: GateScene, meanwhile: () => void): ReturnType<GateScene["checking"]> {
  const { checker, ...rest } = gates.checking(gates.cluster);
  return {
    ...rest,
    checker: {
      begin(...scope) {
        const round = checker.begin(...scope);
        const ask: typeof round.ask = async (question) => {
          const answer = await round.ask(question);
          meanwhile();
          await gates.stage.time.advance(1500);
          return answer;
        };
        return { ...round, ask, [Symbol.dispose]: () => round[Symbol.dispose]() };
      },
    },
  };
}

/** Zone a is done, and zone b lacks one success. */
async function almostOpen(gates: GateScene): Promise<void> {
  const { stage, prometheus, cluster } = gates;
  writeGate(gates);
  await gates.tick(cluster, 2);
  prometheus.answer = () => 1;
  deploy(stage, "x:2");
  await gates.tick(cluster, 40);
  prometheus.answer = () => 0;
  await stage.time.advance(1000);
  await gates.tick(cluster, 1);
  assert.deepEqual(opened(gates), ["Waiting", 1]);
  await stage.time.advance(1000);
}

/** The state of the last stage, and the successes of its check. */
const opened = (gates: GateScene): unknown[] => {
  const stage = statusOf(gates).stages.at(-1);
  return [stage?.state, stage?.checks[0]?.consecutiveSuccesses];
};

onCluster("a gate lets no zone begin by zones that were read long before an answer came", async (gates) => {
  const { stage, cluster, seen } = gates;
  await almostOpen(gates);
  await tickOnce(
    stage,
    cluster,
    answerLate(gates, () => setReady(gates.stage, "ingester-zone-c-0", false)),
  );
  assert.deepEqual(opened(gates), ["Waiting", 2], "zone c is not ready: the answer counts, and nobody wants zone b");
  setReady(gates.stage, "ingester-zone-c-0", true);
  await stage.time.advance(1000);
  await tickOnce(
    stage,
    cluster,
    answerLate(gates, () => {}),
  );
  assert.equal(opened(gates)[0], "Passed", "late answers alone hold nothing");
  await gates.tick(cluster, 60, () => seen.deleted.length === 9);
  assert.deepEqual([seen.deleted.length, seen.violations], [9, []]);
});

onCluster("a late answer does not count for a rollout that has begun meanwhile", async (gates) => {
  const { stage, cluster } = gates;
  await almostOpen(gates);
  const before = statusOf(gates).identity;
  const deployLate = (): void => deploy(stage, "x:3", { zones: ["b", "c"] });
  await tickOnce(stage, cluster, answerLate(gates, deployLate));
  assert.notEqual(statusOf(gates).identity, before);
  assert.deepEqual(opened(gates), ["Waiting", undefined], "zone b waits for new results");
});
