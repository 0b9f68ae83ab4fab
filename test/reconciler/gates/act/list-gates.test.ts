import assert from "node:assert/strict";
import { deploy, tickOnce } from "../../stage.ts";
import { GATES, installGates, onCluster, writeGate } from "./stage.ts";

onCluster("gates hold every zone while they cannot be listed", async (gates) => {
  const { stage, cluster, seen } = gates;
  stage.emulator.faults.inject({ resource: GATES, verb: "list", effect: { kind: "error" } });
  deploy(stage, "x:2");
  const { outcomes } = await gates.tick(cluster, 3);
  assert.equal(outcomes[0]?.state === "held" && outcomes[0].hold.reason, "GateUnreachable");
  assert.deepEqual(seen.deleted, []);
});

onCluster(
  "gates are off without their definition, with one log line and one call in 10 seconds, and on once it is installed",
  async (gates) => {
    const { cluster, calls } = gates;
    const checking = gates.checking(cluster);
    for (let i = 0; i < 3; i++) await tickOnce(gates.stage, cluster, checking);
    assert.equal(calls.filter((call) => call.includes("rolloutgates")).length, 1);
    assert.equal(gates.lines.length, 1);
    assert.match(gates.lines.join(), /rolloutgates\.zonewise\.dev is not installed/);
    installGates(gates.stage);
    writeGate(gates, { when: ["BeforeFirstZone"] });
    await gates.stage.time.advance(10_000);
    gates.prometheus.answer = () => 1;
    deploy(gates.stage, "x:2");
    await gates.stage.time.advance(1000);
    const { outcomes } = await tickOnce(gates.stage, cluster, checking);
    assert.equal(outcomes[0]?.state === "held" && outcomes[0].hold.reason, "GateWaiting");
  },
  { crd: false },
);
