import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { failure } from "../../prometheus/scripted.ts";
import { deploy, tickOnce } from "../stage.ts";
import { witness, type Witness } from "../witness.ts";
import { conditionOf, GATES, installGates, setGateStage, statusOf, writeGate, type GateStage } from "./stage.ts";

describe("gates on a cluster", () => {
  let gates: GateStage;
  let seen: Witness;
  const begin = async (options?: Parameters<typeof setGateStage>[0]): Promise<void> => {
    gates = await setGateStage(options);
    seen = witness(gates.stage);
  };
  beforeEach(() => begin());
  afterEach(() => gates.close());
  const zonesBegun = (): string => [...new Set(seen.deleted.map((name) => name.slice(0, -2)))].join();
  const [A, B, C] = ["ingester-zone-a", "ingester-zone-b", "ingester-zone-c"];

  it("hold zone b until the check succeeds, over the deaths of processes; then the rollout finishes, and nothing more is written", async () => {
    const { stage, prometheus } = gates;
    const { cluster, calls } = stage.connect();
    writeGate(gates);
    await gates.tick(cluster, 2);
    assert.equal(conditionOf(gates, "Open")?.reason, "Settled");
    prometheus.answer = () => 1;
    deploy(stage, "x:2");
    const { outcomes } = await gates.tick(cluster, 40);
    assert.equal(zonesBegun(), A);
    assert.equal(outcomes[0]?.state === "held" && outcomes[0].hold.reason, "GateWaiting");
    assert.match(
      outcomes[0]?.state === "held" ? outcomes[0].hold.message : "",
      /^ingester-zone-b waits for gate gate: errors fails \(up\{.*next check at /,
    );
    assert.equal(conditionOf(gates, "Open")?.status, "False");

    prometheus.answer = () => 0;
    await gates.tick(cluster, 60, () => statusOf(gates).settledTime !== undefined && seen.deleted.length === 9);
    assert.equal(zonesBegun(), [A, B, C].join());
    assert.deepEqual([seen.deleted.length, seen.violations], [9, []]);
    assert.deepEqual(
      statusOf(gates).stages.map(({ point, zone, state }) => [point, zone, state]),
      [
        ["BetweenZones", B, "Passed"],
        ["BetweenZones", C, "Passed"],
      ],
    );
    assert.ok(statusOf(gates).settledTime !== undefined);
    await gates.tick(cluster, 2);
    calls.length = 0;
    const queries = prometheus.seen.length;
    await gates.tick(cluster, 3);
    assert.deepEqual([...new Set(calls)].toSorted(), [
      "GET apps/v1/statefulsets collection",
      "GET zonewise.dev/v1/rolloutgates collection",
    ]);
    assert.deepEqual([calls.length, prometheus.seen.length], [6, queries]);
    const reported = gates.events.map(({ type, reason }) => `${type} ${reason}`);
    assert.deepEqual(reported, ["Normal GateWaiting", "Normal GatePassed", "Normal GateWaiting", "Normal GatePassed"]);
    // For each of the two zones: two that let it begin, and one while it begins.
    assert.match(await gates.metrics.render(), /zonewise_gate_checks_total\{result="Success"\} 6/);
  });

  it("asks no more often than the period, and says when the next check is due", async () => {
    const { stage, prometheus } = gates;
    const { cluster } = stage.connect();
    writeGate(gates, {}, { periodSeconds: 20 });
    await gates.tick(cluster, 2);
    prometheus.answer = () => 1;
    deploy(stage, "x:2");
    await gates.tick(cluster, 100, () => prometheus.seen.length === 1);
    const { nextCheckAt = 0 } = await gates.tick(cluster, 5);
    assert.equal(prometheus.seen.length, 1);
    const leftMs = nextCheckAt - stage.time.now();
    assert.ok(leftMs > 10_000 && leftMs <= 20_000, `${leftMs} ms`);
  });

  for (const [name, answer, reason, message] of [
    ["Prometheus cannot be reached", "hang up", "GateUnreachable", /could not be asked \(Unreachable/],
    [
      "the expression is refused",
      { status: 400, body: failure("unknown function") },
      "GateUnreachable",
      /BadQuery: unknown function \(400\)/,
    ],
    ["a check has failed for good", 1, "GateFailed", /is held by gate gate.*has failed 2 times in a row.*retry-gate/],
  ] as const)
    it(`say why they hold when ${name}`, async () => {
      const { stage, prometheus } = gates;
      const { cluster } = stage.connect();
      const query = answer === "hang up" ? { query: { expr: "up", url: "http://127.0.0.1:1" } } : {};
      writeGate(gates, {}, { failureThreshold: 2, ...query });
      await gates.tick(cluster, 2);
      if (answer !== "hang up") prometheus.answer = () => answer;
      deploy(stage, "x:2");
      const { outcomes } = await gates.tick(cluster, 30);
      const held = outcomes[0]?.state === "held" ? outcomes[0].hold : assert.fail();
      assert.equal(held.reason, reason);
      assert.match(held.message, message);
      assert.equal(conditionOf(gates, "Open")?.reason, reason);
      assert.equal(zonesBegun(), A);
    });

  it("leave the way back open while they have failed", async () => {
    const { stage, prometheus } = gates;
    const { cluster } = stage.connect();
    writeGate(gates, { when: ["BeforeFirstZone", "BetweenZones"] }, { failureThreshold: 1 });
    await gates.tick(cluster, 2);
    deploy(stage, "x:2");
    await gates.tick(cluster, 60, () => seen.deleted.length === 3);
    prometheus.answer = () => 1;
    await gates.tick(cluster, 10);
    assert.equal(statusOf(gates).stages.at(-1)?.state, "Failed");
    deploy(stage, "x:1");
    const { outcomes } = await gates.tick(cluster, 40, () => statusOf(gates).settledTime !== undefined);
    assert.equal(outcomes[0]?.state, "settled");
    assert.deepEqual([seen.deleted.length, zonesBegun()], [6, A]);
  });

  it("hold nothing where they only observe, and say what they would have done", async () => {
    const { stage, prometheus } = gates;
    const { cluster } = stage.connect();
    writeGate(gates, { mode: "Observe" });
    await gates.tick(cluster, 2);
    prometheus.answer = () => 1;
    deploy(stage, "x:2");
    await gates.tick(cluster, 60, () => seen.deleted.length === 9);
    assert.equal(zonesBegun(), [A, B, C].join());
    assert.match(
      statusOf(gates)
        .stages.map(({ state }) => state)
        .join(),
      /^Waiting/,
    );
  });

  it("write nothing if they were edited meanwhile, and judge again", async () => {
    const { stage, prometheus } = gates;
    const { cluster } = stage.connect();
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

  it("hold every zone while they cannot be listed", async () => {
    const { stage } = gates;
    const { cluster } = stage.connect();
    stage.emulator.faults.inject({ resource: GATES, verb: "list", effect: { kind: "error" } });
    deploy(stage, "x:2");
    const { outcomes } = await gates.tick(cluster, 3);
    assert.equal(outcomes[0]?.state === "held" && outcomes[0].hold.reason, "GateUnreachable");
    assert.deepEqual(seen.deleted, []);
  });

  it("forget the results of an edited query also in a tick that does not reach their group, or finds no zones of it", async () => {
    const { stage, prometheus } = gates;
    const { cluster } = stage.connect();
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
      assert.deepEqual([zonesBegun(), successes()], [A, 0]);
    }
  });

  it("say what is wrong with an expression or a group, once a change", async () => {
    const { stage } = gates;
    const { cluster } = stage.connect();
    writeGate(gates, {}, { query: { expr: "up{", url: "prom" } });
    await gates.tick(cluster, 3);
    assert.deepEqual(
      [conditionOf(gates, "Valid")?.status, conditionOf(gates, "Valid")?.message],
      ["False", "check errors: the expression is not valid PromQL at character 4, at its end"],
    );
    writeGate(gates, { group: "other" });
    await gates.tick(cluster, 3);
    assert.equal(conditionOf(gates, "Valid")?.reason, "GroupNotFound");
    writeGate(gates);
    await gates.tick(cluster, 3);
    assert.equal(conditionOf(gates, "Valid")?.status, "True");
    assert.deepEqual(
      gates.events.map(({ reason }) => reason),
      ["GateInvalid", "GateInvalid"],
    );
  });

  it("are off without their definition, with one log line and one call in 10 seconds, and on once it is installed", async () => {
    await gates.close();
    await begin({ crd: false });
    const { cluster, calls } = gates.stage.connect();
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
  });
});
