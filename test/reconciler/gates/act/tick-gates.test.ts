import assert from "node:assert/strict";
import { RolloutError } from "../../../../infra/errors.ts";
import { formatTimestamp } from "../../../../infra/timestamp.ts";
import type { Cluster } from "../../../../infra/kubernetes/cluster.ts";
import { ANNOTATIONS } from "../../../../reconciler/model/annotations.ts";
import type { Draft } from "../../../../reconciler/report/events.ts";
import { failure } from "../../../prometheus/scripted.ts";
import { deploy, tickOnce } from "../../stage.ts";
import { conditionOf, onCluster, statusOf, writeGate, zonesBegun } from "./stage.ts";
import { amend } from "../../../builders.ts";

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

onCluster("a gate asks no more often than the period, and says when the next check is due", async (gates) => {
  const { stage, prometheus, cluster } = gates;
  writeGate(gates, {}, { periodSeconds: 20 });
  await gates.tick(cluster, 2);
  prometheus.answer = () => 1;
  prometheus.seen.length = 0;
  deploy(stage, "x:2");
  await gates.tick(cluster, 100, () => prometheus.seen.length === 1);
  const { nextCheckAt = 0 } = await gates.tick(cluster, 5);
  assert.equal(prometheus.seen.length, 1);
  const leftMs = nextCheckAt - stage.time.now();
  assert.ok(leftMs > 10_000 && leftMs <= 20_000, `${leftMs} ms`);
});

for (const [name, answer, reason, message] of [
  ["Prometheus cannot be reached", "hang up", "GateUnreachable", /has no answer \(Unreachable/],
  [
    "the expression is refused",
    { status: 400, body: failure("unknown function") },
    "GateInvalid",
    /it is invalid, and opens only once it is corrected: check errors: BadQuery: unknown function \(400\)$/,
  ],
  [
    "the expression cannot be evaluated on the data of now",
    { status: 422, body: failure("many-to-many matching", "execution") },
    "GateUnreachable",
    /NotEvaluated: many-to-many matching \(422\)/,
  ],
  ["a check has failed for good", 1, "GateFailed", /is stopped by gate gate.*has failed 2 times in a row.*retry-gate/],
] as const)
  onCluster(`gates say why they hold when ${name}`, async (gates) => {
    const { stage, prometheus, cluster } = gates;
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
    assert.equal(zonesBegun(gates), A);
  });

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

onCluster("gates leave the way back open while they have failed", async (gates) => {
  const { stage, prometheus, cluster, seen } = gates;
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
  assert.deepEqual([seen.deleted.length, zonesBegun(gates)], [6, A]);
});

onCluster("gates hold nothing where they only observe, and say what they would have done", async (gates) => {
  const { stage, prometheus, cluster, seen } = gates;
  writeGate(gates, { mode: "Observe" });
  await gates.tick(cluster, 2);
  prometheus.answer = () => 1;
  deploy(stage, "x:2");
  await gates.tick(cluster, 60, () => seen.deleted.length === 9);
  assert.equal(zonesBegun(gates), [A, B, C].join());
  assert.match(
    statusOf(gates)
      .stages.map(({ state }) => state)
      .join(),
    /^Waiting/,
  );
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

onCluster("a bypass lets the zones that have one begin, one after the other, and ends by itself", async (gates) => {
  const { stage, prometheus, cluster, seen } = gates;
  const annotate = (name: string, forMs: number): void => {
    const annotations = { [ANNOTATIONS.bypassGatesUntil]: formatTimestamp(stage.time.now() + forMs) };
    amend(stage.emulator.store, "StatefulSet", name, { annotations });
  };
  writeGate(gates, {}, { failureThreshold: 1 });
  await gates.tick(cluster, 2);
  prometheus.answer = () => 1;
  deploy(stage, "x:2");
  await gates.tick(cluster, 30);
  assert.deepEqual([statusOf(gates).stages.at(-1)?.state, zonesBegun(gates)], ["Failed", A]);
  annotate(B, 60_000);
  annotate(C, 25 * 3_600_000);
  const { outcomes } = await gates.tick(cluster, 1);
  assert.deepEqual(
    outcomes[0]?.bypasses?.map(({ zone }) => zone),
    [B],
  );
  await gates.tick(cluster, 90);
  assert.deepEqual([zonesBegun(gates), seen.deleted.length, seen.violations], [[A, B].join(), 6, []]);
  assert.deepEqual(
    statusOf(gates).stages.map(({ zone, state }) => [zone, state]),
    [
      [B, "Bypassed"],
      [C, "Failed"],
    ],
  );
  const told = gates.events.filter(({ reason }) => reason.includes("Bypass"));
  assert.deepEqual(
    told.map(({ regarding, type, reason }) => [regarding.kind, regarding.name, type, reason]),
    [
      ["StatefulSet", B, "Warning", "GatesBypassed"],
      ["StatefulSet", C, "Warning", "BypassRefused"],
      ["RolloutGate", "gate", "Warning", "GatesBypassed"],
    ],
  );
});

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
