/** Tenants write names and kinds: none of it makes the metrics grow. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { METRICS } from "../../infra/metrics/tables/metric-table.ts";
import { NODE_METRICS } from "../../infra/metrics/tables/metric-table.ts";
import { createNodeSampler, MAX_KINDS, MAX_NODES, MAX_VERSIONS } from "../../functions/nodes/show-nodes.ts";
import { createMetrics } from "../../infra/metrics/metrics.ts";
import { createRateLimiter } from "../../infra/kubernetes/rate-limit.ts";
import { NO_STATUS, readPolicy } from "../../reconciler/nodes/policy.ts";
import { skippingClock } from "./stage.ts";

/** The maximum number of a metric's label sets; 1 for all others. */
const BOUNDS: Readonly<Record<string, number>> = {
  hostsVersion: MAX_VERSIONS,
  hostsState: 5,
  hostsCrashes: MAX_NODES,
  nodePhase: MAX_NODES,
  nodeDeadline: MAX_NODES,
  nodesSkipped: MAX_KINDS,
  nodeTransitions: MAX_KINDS,
  nodesLastPass: 1,
};

const ACTIVE = {
  nodeUid: "u",
  from: "1",
  to: "2",
  bootId: "b",
  startedAt: "2026-01-01T00:00:00Z",
  phase: "Draining",
  since: "2026-01-01T00:00:00Z",
};

it("no metric of nodes has more series than is stated, for any shadows and any policy", () => {
  const nodes = Array.from({ length: MAX_NODES + 200 }, (_, i) => `node-${i}`);
  const shadows = nodes.map((name) => ({
    name: `brs-${name}`,
    status: { current_version: name, target_version: name, current_state: "Idle", crash_count: 1 } as const,
  }));
  const kinds = Array.from({ length: MAX_KINDS + 100 }, (_, i) => `${i}`);
  const status = {
    ...NO_STATUS,
    active: nodes.map((node) => ({ ...ACTIVE, node })),
    skipped: Object.fromEntries(kinds.map((reason) => [reason, 1])),
    transitions: kinds.map((to) => ({ from: "a", to, fromVersion: "1", toVersion: "2", count: 1 })),
  };
  const policy = readPolicy({ metadata: { name: "default" }, spec: {}, status });
  const sample = createNodeSampler();
  for (let scrape = 0; scrape < 2; scrape++) {
    const samples = sample(shadows, policy);
    assert.equal(samples.size, Object.keys(NODE_METRICS).length - 1);
    for (const [key, { name }] of Object.entries(NODE_METRICS)) {
      const [count, bound] = [samples.get(name)?.length ?? 0, BOUNDS[key] ?? 1];
      assert.ok(count <= bound, `${key} has ${count} series, ${bound} are stated`);
    }
  }
});

it("our own calls stay distinguishable, regardless of the number of kinds that tenants mirror", async () => {
  const metrics = createMetrics();
  for (let i = 0; i < 34_000; i++)
    metrics.observer.answered({ path: `/apis/g${i}.evil`, method: "GET", status: "404", seconds: 1 });
  metrics.observer.answered({ path: "apps/v1/statefulsets collection", method: "GET", status: "200", seconds: 1 });
  const counts = (await metrics.render())
    .split("\n")
    .filter((line) => line.startsWith(`${METRICS.apiRequests.name}_count`));
  assert.deepEqual(
    counts.map((line) => line.replace(/^.*path="(.*?)".* (\d+)$/, "$1 $2")),
    ["other 34000", "apps/v1/statefulsets collection 1"],
  );
});

it("API groups beyond a hundred share a token bucket, and take none from ours", async () => {
  const { take } = createRateLimiter({ qps: 1, burst: 1 }, skippingClock());
  const open = new AbortController().signal;
  const refused = async (group: string): Promise<boolean> =>
    await take(group, 0, open).then(
      () => false,
      () => true,
    );
  assert.equal(await refused("core"), false);
  const answers = await Promise.all(Array.from({ length: 1000 }, (_, i) => refused(`g${i}.evil`)));
  assert.equal(answers.filter((one) => !one).length, 100);
  await assert.rejects(take("core", 999, open), { code: "Throttled" });
  await take("core", 1001, open);
});
