/** Tenants write annotations, names and patterns, and pods send any answer: none of it makes the metrics grow. */
import assert from "node:assert/strict";
import { it } from "node:test";
import fc from "fast-check";
import { METRICS } from "../../infra/metrics/tables/metric-table.ts";
import { MOST_KINDS, MOST_NODES, MOST_POLICIES, MOST_VERSIONS } from "../../infra/metrics/node-update-metrics.ts";
import { createMetrics, MOST_GROUPS, MOST_SERIES, MOST_WEBHOOKS, type Metrics } from "../../infra/metrics/metrics.ts";
import { MOST_ZONES, sampleGroups } from "../../functions/totals/group-samples.ts";
import { MOST_PHASED } from "../../infra/metrics/phased-metrics.ts";
import { createRateLimiter } from "../../infra/kubernetes/rate-limit.ts";
import { runs } from "../runs.ts";
import { skippingClock } from "./stage.ts";

/** The maximum number of a metric's label sets. */
const BOUNDS: Readonly<Record<keyof typeof METRICS, number>> = {
  apiRequests: MOST_SERIES + 1,
  rateLimited: 6,
  podRequests: MOST_SERIES + 1,
  clusterRefused: MOST_SERIES + 1,
  failurePolicy: 2 * MOST_WEBHOOKS,
  certificateExpiry: 1,
  groupReconciles: MOST_GROUPS + 1,
  groupFailures: MOST_GROUPS + 1,
  groupDuration: MOST_GROUPS + 1,
  groupSuccess: MOST_GROUPS,
  ticks: 1,
  podsReplaced: MOST_GROUPS + 1,
  groupBlocked: MOST_GROUPS,
  lastTick: 1,
  groupPhase: MOST_GROUPS,
  lastStep: MOST_GROUPS,
  progressDeadline: MOST_GROUPS,
  stepsLeft: MOST_GROUPS,
  rolloutDuration: MOST_GROUPS,
  zonePods: MOST_GROUPS * MOST_ZONES * 4,
  requests: 2 * 3,
  requestBytes: 2,
  responseBytes: 2,
  requestsInFlight: 2,
  webhookAnswers: 1,
  evictions: 1,
  evictionsInFlight: 1,
  budgetsObserved: 1,
  hostsVersion: MOST_VERSIONS,
  hostsState: 5,
  hostsCrashes: MOST_NODES,
  nodesActive: MOST_POLICIES,
  nodePhase: MOST_POLICIES * MOST_NODES,
  nodeDeadline: MOST_POLICIES * MOST_NODES,
  nodesFrozen: MOST_POLICIES,
  nodesWindow: MOST_POLICIES,
  nodesSkipped: MOST_POLICIES * MOST_KINDS,
  nodeTransitions: MOST_POLICIES * MOST_KINDS,
  nodesLastPass: 1,
  gateChecks: 3,
  phasedPhase: MOST_PHASED,
  phasedChecks: 1,
};

/** Input from tenants and pods. */
type Event = (metrics: Metrics, text: string, number: number) => void;

const EVENTS: readonly Event[] = [
  ({ phased }, name, n) => phased.phase({ namespace: "n", name }, `phase-${n}`),
  ({ gates }) => gates.checked("Success"),
  ({ phased }) => phased.checked("Success"),
  ({ observer }, path, n) => observer.answered({ path, method: "GET", status: String(n), seconds: 1 }),
  ({ observer }, group) => observer.answered({ path: `/apis/${group}`, method: "GET", status: "404", seconds: 1 }),
  ({ observer }, group) => observer.rateLimited(group),
  ({ podObserver }, path, n) => podObserver.podAnswered({ path, method: "POST", status: String(n), seconds: 1 }),
  ({ podObserver }, namespace) => podObserver.clusterRefused({ method: "POST", namespace }),
  (metrics, group) => metrics.reconcileStarted({ namespace: "a", group }),
  (metrics, group, n) => metrics.reconcileDone({ namespace: group, group }, { seconds: 1, failed: n % 2 === 0, finishedAt: new Date(0) }),
  (metrics, group) => metrics.podReplaced({ namespace: "a", group }),
  (metrics, group, n) => metrics.groupBlocked({ namespace: "a", group }, n % 3 === 0 ? undefined : "ZonePaused"),
  (metrics, group, n) => n % 100 === 0 && metrics.keepGroups([{ namespace: "a", group }]),
  (metrics, webhook, n) =>
    metrics.failurePolicies(
      Array.from({ length: n }, (_, i) => ({ type: "ValidatingWebhook", webhook: `${webhook}${i}`, policy: "Fail" }) as const),
    ),
  ({ nodeUpdates }, text, n) => {
    const status = { current_version: text, current_state: "Idle", crash_count: n };
    const transitions = [{ from: "a", to: "b", fromVersion: text, toVersion: text, count: n }];
    const policy = {
      name: text,
      status: { active: [{ node: text, phase: text, since: "", seconds: n }], windowOpen: true, skipped: { [text]: n }, transitions },
    };
    nodeUpdates.seen({ nodes: [{ name: text, shadow: { status } }], policies: [policy], now: n });
  },
  (metrics, text, n) => {
    if (n !== 7) return;
    const zone = { name: text, currentRevision: "", updateRevision: "", replicas: 1, pods: 1, updated: 1, ready: 1 };
    const zones = Array.from({ length: 12 }, (_, i) => ({
      ...zone,
      name: `${text}${i}`,
      paused: false,
      generation: 1,
      observedGeneration: 1,
    }));
    const groups = Array.from({ length: 1200 }, (_, i) => ({
      namespace: "a",
      deadline: 1800,
      status: { group: `${text}${i}`, phase: "Waiting", zones } as const,
    }));
    metrics.show(sampleGroups(groups, { passes: 1, lastTick: "2026-01-01T00:00:00Z", series: new Map() }, MOST_GROUPS));
  },
  ({ webhooks }, method, n) => {
    webhooks.requestStarted(method, "route");
    webhooks.requestDone({ method, route: "route", status: [200, 400, 405][n % 3] ?? 200, seconds: 1, receivedBytes: n, sentBytes: 1 });
  },
];

function countLabelSets(lines: readonly string[], name: string): number {
  const own = lines.filter((line) => line.startsWith(name));
  return new Set(own.map((line) => line.replace(/^(\w+?)(?:_bucket|_sum|_count)?(\{.*\})? .*$/, "$2").replace(/le="[^"]*",?/, ""))).size;
}

it("no metric has more series than is stated, for any input", async () => {
  const text = fc.oneof(
    fc.string({ maxLength: 12 }),
    fc.string({ minLength: 300, maxLength: 400 }),
    fc.constantFrom("__proto__", "other", 'a"\n', "core/v1/pods object"),
  );
  const hostile = fc.record({ event: fc.nat(EVENTS.length - 1), text, number: fc.integer({ min: 0, max: 999 }) });
  const metrics = createMetrics();
  for (const { event, text, number } of fc.sample(hostile, { numRuns: runs(60_000), seed: 7 })) EVENTS[event]?.(metrics, text, number);
  const rendered = await metrics.render();
  const lines = rendered.split("\n");
  for (const [key, bound] of Object.entries(BOUNDS)) {
    const count = countLabelSets(lines, METRICS[key as keyof typeof METRICS].name);
    assert.ok(count <= bound, `${key} has ${count} series, ${bound} are stated`);
  }
  assert.ok(rendered.length < 10_000_000);
});

it("our own calls stay distinguishable, regardless of the number of kinds that tenants mirror", async () => {
  const metrics = createMetrics();
  for (let i = 0; i < 34_000; i++) metrics.observer.answered({ path: `/apis/g${i}.evil`, method: "GET", status: "404", seconds: 1 });
  metrics.observer.answered({ path: "apps/v1/statefulsets collection", method: "GET", status: "200", seconds: 1 });
  const counts = (await metrics.render()).split("\n").filter((line) => line.startsWith(`${METRICS.apiRequests.name}_count`));
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
