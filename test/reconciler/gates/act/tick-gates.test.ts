import assert from "node:assert/strict";
import { RolloutError } from "../../../../infra/errors.ts";
import type { Cluster } from "../../../../infra/kubernetes/cluster.ts";
import type { Draft } from "../../../../reconciler/report/events.ts";
import { failure } from "../../../prometheus/scripted.ts";
import { deploy, tickOnce } from "../../stage.ts";
import { define } from "../../../demo/definitions.ts";
import { conditionOf, GATES, onCluster, statusOf, writeGate, zonesBegun } from "./stage.ts";

const [A, B, C] = ["ingester-zone-a", "ingester-zone-b", "ingester-zone-c"];

onCluster(
  "gates hold zone b until the check succeeds, over the deaths of processes; then the rollout finishes, and nothing more is written",
  async (gates) => {
    const { stage, prometheus, cluster, calls, seen } = gates;
    writeGate(gates);
    await gates.tick(cluster, 2);
    assert.equal(conditionOf(gates, "Open")?.reason, "Settled");
    prometheus.answer = () => 1;
    deploy(stage, "x:2");
    const { outcomes } = await gates.tick(cluster, 40);
    assert.equal(zonesBegun(gates), A);
    assert.equal(outcomes[0]?.state === "held" && outcomes[0].hold.reason, "GateWaiting");
    assert.match(
      outcomes[0]?.state === "held" ? outcomes[0].hold.message : "",
      /^ingester-zone-b waits for gate gate: check "errors" fails \(up\{.*next check at /,
    );
    assert.equal(conditionOf(gates, "Open")?.status, "False");

    prometheus.answer = () => 0;
    await gates.tick(cluster, 60, () => statusOf(gates).settledTime !== undefined && seen.deleted.length === 9);
    assert.equal(zonesBegun(gates), [A, B, C].join());
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
    // For each of the two zones: two that let it begin, one while that is recorded, and one while it begins.
  },
);

onCluster("gates show what Prometheus says of an expression, before a zone waits for it and then", async (gates) => {
  const { stage, prometheus, cluster } = gates;
  prometheus.answer = () => ({ status: 400, body: failure("1:17: parse error") });
  writeGate(gates, {}, { query: { expr: "sum(rate(errors[5m)) > 1", url: prometheus.url } });
  await gates.tick(cluster, 2);
  const message = "check errors: BadQuery: 1:17: parse error (400)";
  assert.equal(conditionOf(gates, "Valid")?.message, message);
  const hold = async (ticks: number) => {
    const { outcomes } = await gates.tick(cluster, ticks);
    return outcomes[0]?.state === "held" ? outcomes[0].hold : assert.fail();
  };
  prometheus.answer = () => ({ status: 503, body: "" });
  deploy(stage, "x:2");
  const unasked = await hold(20);
  assert.equal(unasked.reason, "GateUnreachable", "the last word is the last answer");
  assert.ok(unasked.message.includes(`it may be invalid (${message})`), unasked.message);
  prometheus.answer = () => ({ status: 400, body: failure("1:17: parse error") });
  const refused = await hold(30);
  assert.equal(refused.reason, "GateInvalid");
  assert.equal(
    refused.message,
    `ingester-zone-b waits for gate gate: it is invalid, and opens only once it is corrected: ${message}`,
  );
  assert.deepEqual([refused.until, zonesBegun(gates)], [undefined, A]);
  assert.equal(conditionOf(gates, "Open")?.reason, "GateInvalid");
  assert.match(conditionOf(gates, "Open")?.message ?? "", /^between zones, before ingester-zone-b: it is invalid/);
  assert.deepEqual(
    gates.events.filter(({ reason }) => reason === "GateInvalid").map((event) => event.message),
    [message, `between zones, before ingester-zone-b: it is invalid, and opens only once it is corrected: ${message}`],
  );
  prometheus.answer = () => 1;
  await gates.tick(cluster, 20);
  assert.equal(conditionOf(gates, "Valid")?.reason, "Valid", "Prometheus may have learnt it");
});

onCluster("gates ask Prometheus about their expressions once, and again only while it has not said", async (gates) => {
  const { prometheus, cluster, calls } = gates;
  const query = { expr: 'errors{pod=~"$(candidate_pods)"}', url: prometheus.url };
  const baseline = { expr: "scalar(x)", maxRatio: "1" };
  const scalar = { status: "success", data: { resultType: "scalar", result: [0, "1"] } };
  prometheus.answer = () => ({ status: 503, body: "" });
  writeGate(gates, {}, { query, baseline, successWhen: "WithinBaseline" });
  const process = gates.checking(cluster);
  for (let i = 0; i < 3; i++) await tickOnce(gates.stage, cluster, process);
  const open = conditionOf(gates, "Valid");
  assert.deepEqual([open?.status, open?.reason, prometheus.seen.length], ["Unknown", "ExpressionUnanswered", 2]);
  assert.match(
    open?.message ?? "",
    /^check errors: Overloaded: the query: .*; check errors: Overloaded: the baseline: /,
  );
  assert.deepEqual(gates.events, []);
  prometheus.answer = ({ expr }) => (expr === "scalar(x)" ? { body: scalar } : 0);
  await gates.tick(cluster, 3);
  assert.equal(prometheus.seen.length, 4);
  assert.ok(prometheus.seen.some(({ expr }) => expr === 'errors{pod=~"(?:zone-a-[0-9]+)"}'));
  const refused = "check errors: NotAVector: the baseline: the expression gives a scalar, not an instant vector";
  assert.equal(conditionOf(gates, "Valid")?.message, refused);
  writeGate(gates, {}, { query: { expr: "errors > 0", url: prometheus.url } });
  await gates.tick(cluster, 3);
  assert.deepEqual([conditionOf(gates, "Valid")?.status, prometheus.seen.length], ["True", 5]);
  calls.length = 0;
  await gates.tick(cluster, 3);
  assert.deepEqual([prometheus.seen.length, calls.filter((call) => !call.startsWith("GET"))], [5, []]);
});

onCluster(
  "a gate that is made while the group's step takes long holds the zone that the step would begin",
  async (gates) => {
    const { stage, cluster, seen } = gates;
    deploy(stage, "x:2");
    await stage.time.advance(500);
    let isListed = false;
    /** Lists of pods take long enough for a user to make a gate. */
    const slow: typeof cluster = {
      ...cluster,
      async *list(resource, query, call) {
        if (resource.plural === "pods" && !isListed) {
          isListed = true;
          writeGate(gates, { when: ["BeforeFirstZone"] });
          void stage.time.advance(2000);
          await stage.clock.sleep(1500);
        }
        yield* cluster.list(resource, query, call);
      },
    };
    const { outcomes } = await tickOnce(stage, slow, gates.checking(slow));
    assert.equal(outcomes[0]?.state === "held" && outcomes[0].hold.reason, "GateWaiting");
    assert.deepEqual(seen.deleted, []);
  },
);

onCluster("a gate stays as it is while the StatefulSets of its namespace cannot be read", async (gates) => {
  const { cluster, stage } = gates;
  writeGate(gates);
  await gates.tick(cluster, 2);
  const before = statusOf(gates);
  gates.events.length = 0;
  const failing: Cluster = {
    ...cluster,
    async *list(resource, query, call) {
      if (resource.plural === "statefulsets" && query.namespace === "default")
        throw new RolloutError("Timeout", "the API server is slow");
      yield* cluster.list(resource, query, call);
    },
  };
  const emitEvents = (drafts: readonly Draft[]) => void gates.events.push(...drafts);
  const namespaces = ["default", "other"];
  const { failures } = await tickOnce(stage, failing, { ...gates.checking(failing), emitEvents, namespaces });
  assert.deepEqual([...failures.keys()], ["default"]);
  assert.deepEqual([statusOf(gates), gates.events], [before, []]);
});

onCluster("a baseline from before the rollout is asked for that time", async (gates) => {
  const { stage, prometheus, cluster } = gates;
  const baseline = { expr: "y", at: "BeforeRollout", maxDifference: "0" };
  writeGate(gates, {}, { query: { expr: "x", url: prometheus.url }, baseline, successWhen: "WithinBaseline" });
  await gates.tick(cluster, 2);
  prometheus.seen.length = 0;
  deploy(stage, "x:2");
  await gates.tick(cluster, 30, () => prometheus.seen.length > 3);
  const times = prometheus.seen.map(({ expr, time }) => [expr, time]);
  const { startTime } = statusOf(gates);
  assert.deepEqual(times.slice(0, 2).toSorted(), [
    ["x", undefined],
    ["y", String(Date.parse(startTime) / 1000)],
  ]);
});

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
    await define(gates.stage.emulator.store, ["rolloutgates"]);
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
