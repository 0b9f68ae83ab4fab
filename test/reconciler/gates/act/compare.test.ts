/** Gates whose checks have placeholders and baselines, on the embedded cluster. */
import assert from "node:assert/strict";
import { deploy } from "../../stage.ts";
import { conditionOf, onCluster, statusOf, writeGate, zonesBegun } from "./stage.ts";

const [A, B] = ["ingester-zone-a", "ingester-zone-b"];

onCluster(
  "a check compares the updated pods with the others, fills in their names, and tells both numbers",
  async (gates) => {
    const { stage, prometheus, cluster } = gates;
    const expr = `sum(rate(errors{pod=~"$(candidate_pods)"}[$(range)]))`;
    const baseline = { expr: `sum(rate(errors{pod=~"$(other_pods)"}[$(range)]))`, maxRatio: "1.5" };
    const query = { expr, url: prometheus.url };
    writeGate(gates, {}, { query, baseline, successWhen: "WithinBaseline" });
    await gates.tick(cluster, 2);
    assert.equal(conditionOf(gates, "Valid")?.reason, "Valid");
    const number = (value: string) => {
      const result = [{ metric: {}, value: [1, value] }];
      return { status: 200, body: { status: "success", data: { resultType: "vector", result } } };
    };
    let candidate = "0.2";
    prometheus.answer = ({ expr: asked }) =>
      number(asked.includes("zone-a-[0-9]+") && !asked.includes("|") ? candidate : "0.1");
    deploy(stage, "x:2");
    const { outcomes } = await gates.tick(cluster, 40);
    const held = outcomes[0]?.state === "held" ? outcomes[0].hold : assert.fail();
    assert.match(
      held.message,
      /check "errors" fails \(0\.2 against a baseline of 0\.1; at most 1\.5 times is allowed\)/,
    );
    assert.equal(
      prometheus.seen.some(({ expr: asked }) => asked === `sum(rate(errors{pod=~"(?:${A}-[0-9]+)"}[60s]))`),
      true,
      JSON.stringify(prometheus.seen.at(-1)),
    );
    assert.equal(zonesBegun(gates), A);
    candidate = "0.15";
    await gates.tick(cluster, 20, () => zonesBegun(gates) !== A);
    assert.equal(zonesBegun(gates), [A, B].join());
    assert.match(
      String(statusOf(gates).stages[0]?.checks[0]?.["sample"]),
      /^0\.15 against a baseline of 0\.1; at most 1\.5 times is allowed$/,
    );
  },
);

onCluster("a baseline from before the rollout is asked for that time", async (gates) => {
  const { stage, prometheus, cluster } = gates;
  const baseline = { expr: "y", at: "BeforeRollout", maxDifference: "0" };
  writeGate(gates, {}, { query: { expr: "x", url: prometheus.url }, baseline, successWhen: "WithinBaseline" });
  await gates.tick(cluster, 2);
  prometheus.seen.length = 0;
  deploy(stage, "x:2");
  await gates.tick(cluster, 30, () => prometheus.seen.length > 3);
  const times = prometheus.seen.map(({ expr, time }) => [expr, time]);
  const { startTime } = statusOf(gates) as unknown as { startTime: string };
  assert.deepEqual(times.slice(0, 2).toSorted(), [
    ["x", undefined],
    ["y", String(Date.parse(startTime) / 1000)],
  ]);
});
