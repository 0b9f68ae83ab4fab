/** Tenants write annotations, names and patterns, and pods send any answer: none of it makes the metrics grow. */
import assert from "node:assert/strict";
import { it } from "node:test";
import fc from "fast-check";
import { METRICS } from "../../infra/metrics/tables/metric-table.ts";
import { NODE_METRICS } from "../../infra/metrics/tables/node-metric-table.ts";
import {
  createNodeSampler,
  MAX_KINDS,
  MAX_NODES,
  MAX_POLICIES,
  MAX_VERSIONS,
} from "../../functions/nodes/node-samples.ts";
import { createMetrics, MAX_GROUPS, MAX_SERIES, MAX_WEBHOOKS, type Metrics } from "../../infra/metrics/metrics.ts";
import {
  MAX_BUDGETS,
  MAX_PHASED,
  sampleGroups,
  samplePhases,
  sampleProtections,
} from "../../functions/totals/group-samples.ts";
import { createRateLimiter } from "../../infra/kubernetes/rate-limit.ts";
import { MAX_ZONES } from "../../reconciler/model/too-many-zones.ts";
import { NO_STATUS } from "../../reconciler/nodes/policy-status.ts";
import { readPolicy } from "../../reconciler/nodes/policy.ts";
import { runs } from "../runs.ts";
import { skippingClock } from "./stage.ts";

/** The maximum number of a metric's label sets. */
const BOUNDS: Readonly<Record<keyof typeof METRICS, number>> = {
  apiRequests: MAX_SERIES + 1,
  rateLimited: 6,
  rateLimit: 1,
  podRequests: MAX_SERIES + 1,
  clusterRefused: MAX_SERIES + 1,
  failurePolicy: 2 * MAX_WEBHOOKS,
  certificateExpiry: 1,
  groupReconciles: MAX_GROUPS + 1,
  groupFailures: MAX_GROUPS + 1,
  groupDuration: MAX_GROUPS + 1,
  groupSuccess: MAX_GROUPS,
  ticks: 1,
  podsReplaced: MAX_GROUPS + 1,
  groupHeld: MAX_GROUPS,
  lastTick: 1,
  groupPhase: MAX_GROUPS,
  lastStep: MAX_GROUPS,
  progressDeadline: MAX_GROUPS,
  stepsLeft: MAX_GROUPS,
  rolloutDuration: MAX_GROUPS,
  zonePods: MAX_GROUPS * MAX_ZONES * 4,
  gatesBypassed: MAX_GROUPS * MAX_ZONES,
  windowOpen: MAX_GROUPS * MAX_ZONES,
  windowOpens: MAX_GROUPS * MAX_ZONES,
  requests: 2 * 3,
  requestBytes: 2,
  responseBytes: 2,
  requestsInFlight: 2,
  webhookAnswers: 1,
  evictions: 1,
  evictionsInFlight: 1,
  budgetsObserved: 1,
  budgetProtecting: MAX_BUDGETS,
  hostsVersion: MAX_VERSIONS,
  hostsState: 5,
  hostsCrashes: MAX_NODES,
  nodesActive: MAX_POLICIES,
  nodePhase: MAX_POLICIES * MAX_NODES,
  nodeDeadline: MAX_POLICIES * MAX_NODES,
  nodesFrozen: MAX_POLICIES,
  nodesWindow: MAX_POLICIES,
  nodesSkipped: MAX_POLICIES * MAX_KINDS,
  nodeTransitions: MAX_POLICIES * MAX_KINDS,
  nodesLastPass: 1,
  gateChecks: 3,
  phasedPhase: MAX_PHASED,
  phasedChecks: 1,
};

const ACTIVE = {
  nodeUid: "u",
  shadowUid: "s",
  from: "1",
  to: "2",
  bootId: "b",
  startedAt: "2026-01-01T00:00:00Z",
  phase: "Draining",
  since: "2026-01-01T00:00:00Z",
};

/** Input from tenants and pods. */
type Event = (metrics: Metrics, text: string, number: number) => void;

const EVENTS: readonly Event[] = [
  ({ gates }) => gates.checked("Success"),
  ({ phased }) => phased.checked("Success"),
  ({ observer }, path, n) => observer.answered({ path, method: "GET", status: String(n), seconds: 1 }),
  ({ observer }, group) => observer.answered({ path: `/apis/${group}`, method: "GET", status: "404", seconds: 1 }),
  ({ observer }, group) => observer.rateLimited(group),
  ({ podObserver }, path, n) => podObserver.podAnswered({ path, method: "POST", status: String(n), seconds: 1 }),
  ({ podObserver }, namespace) => podObserver.clusterRefused({ method: "POST", namespace }),
  (metrics, group) => metrics.reconcileStarted({ namespace: "a", group }),
  (metrics, group, n) =>
    metrics.reconcileDone({ namespace: group, group }, { seconds: 1, failed: n % 2 === 0, finishedAt: new Date(0) }),
  (metrics, group) => metrics.podReplaced({ namespace: "a", group }),
  (metrics, group, n) => metrics.groupHeld({ namespace: "a", group }, n % 3 === 0 ? undefined : "ZonePaused"),
  (metrics, group, n) => n % 100 === 0 && metrics.keepGroups([{ namespace: "a", group }]),
  (metrics, webhook, n) =>
    metrics.failurePolicies(
      Array.from(
        { length: n },
        (_, i) => ({ type: "ValidatingWebhook", webhook: `${webhook}${i}`, policy: "Fail" }) as const,
      ),
    ),
  ({ nodesPassed }, _, n) => nodesPassed(n),
  (metrics, text, n) => {
    if (n !== 7) return;
    const zone = { name: text, currentRevision: "", updateRevision: "", replicas: 1, pods: 1, updated: 1, ready: 1 };
    const zones = Array.from({ length: 12 }, (_, i) => ({
      ...zone,
      name: `${text}${i}`,
      paused: false,
      generation: 1,
      observedGeneration: 1,
      rolloutWindow: { freezes: "2025-01-01T00:00:00Z/2027-01-01T00:00:00Z" },
    }));
    const groups = Array.from({ length: 1200 }, (_, i) => ({
      namespace: "a",
      deadline: 1800,
      status: { group: `${text}${i}`, phase: "Waiting", zones } as const,
    }));
    const phases = groups.map(({ namespace }, i) => ({ namespace, name: `${text}${i}`, phase: "Rolling" }));
    const totals = { passes: 1, lastTick: "2026-01-01T00:00:00Z", series: new Map() };
    const shown = sampleGroups(groups, totals, { most: MAX_GROUPS, now: Date.parse("2026-01-01T00:00:00Z") });
    const budgets = phases.map((one) => ({ ...one, isProtecting: true, reason: "Protecting" }));
    metrics.show(new Map([...shown, samplePhases(phases), sampleProtections(budgets)]));
  },
  ({ webhooks }, method, n) => {
    webhooks.requestStarted(method, "route");
    webhooks.requestDone({
      method,
      route: "route",
      status: [200, 400, 405][n % 3] ?? 200,
      seconds: 1,
      receivedBytes: n,
      sentBytes: 1,
    });
  },
];

function countLabelSets(lines: readonly string[], name: string): number {
  const own = lines.filter((line) => line.startsWith(name));
  return new Set(
    own.map((line) => line.replace(/^(\w+?)(?:_bucket|_sum|_count)?(\{.*\})? .*$/, "$2").replace(/le="[^"]*",?/, "")),
  ).size;
}

it("no metric has more series than is stated, for any input", async () => {
  const text = fc.oneof(
    fc.string({ maxLength: 12 }),
    fc.string({ minLength: 300, maxLength: 400 }),
    fc.constantFrom("__proto__", "other", 'a"\n', "core/v1/pods object"),
  );
  const hostile = fc.record({ event: fc.nat(EVENTS.length - 1), text, number: fc.integer({ min: 0, max: 999 }) });
  const metrics = createMetrics();
  for (const { event, text, number } of fc.sample(hostile, { numRuns: runs(60_000), seed: 7 }))
    EVENTS[event]?.(metrics, text, number);
  const rendered = await metrics.render();
  const lines = rendered.split("\n");
  for (const [key, bound] of Object.entries(BOUNDS)) {
    const count = countLabelSets(lines, METRICS[key as keyof typeof METRICS].name);
    assert.ok(count <= bound, `${key} has ${count} series, ${bound} are stated`);
  }
  assert.ok(rendered.length < 10_000_000);
});

it("no metric of nodes has more series than is stated, for any shadows and policies", () => {
  const nodes = Array.from({ length: MAX_NODES + 200 }, (_, i) => `node-${i}`);
  const shadows = nodes.map((name) => ({
    name,
    status: { current_version: name, current_state: "Idle", crash_count: 1 } as const,
  }));
  const kinds = Array.from({ length: MAX_KINDS + 100 }, (_, i) => `${i}`);
  const status = {
    ...NO_STATUS,
    active: nodes.map((node) => ({ ...ACTIVE, node })),
    skipped: Object.fromEntries(kinds.map((reason) => [reason, 1])),
    transitions: kinds.map((to) => ({ from: "a", to, fromVersion: "1", toVersion: "2", count: 1 })),
  };
  const stored = Array.from({ length: MAX_POLICIES + 10 }, (_, i) => ({
    metadata: { name: `policy-${i}` },
    spec: {},
    status,
  }));
  const sample = createNodeSampler();
  for (let scrape = 0; scrape < 2; scrape++) {
    const samples = sample(
      shadows,
      stored.map((policy) => readPolicy({ apiVersion: "zonewise.dev/v1", kind: "NodeUpdatePolicy", ...policy })),
    );
    assert.equal(samples.size, Object.keys(NODE_METRICS).length - 1);
    for (const [key, { name }] of Object.entries(NODE_METRICS)) {
      const [count, bound] = [samples.get(name)?.length ?? 0, BOUNDS[key as keyof typeof NODE_METRICS]];
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
