/** The metrics of a process, in its own registry. */
import { OWN_GROUPS, OWN_PATHS } from "../kubernetes/api-path.ts";
import { type MetricRow, type Samples, createRegistry } from "./registry.ts";
import { METRICS } from "./tables/metric-table.ts";
import { KEPT, nameProcess } from "./totals.ts";
import type { FailurePolicy } from "../certs/configurations.ts";
import type { PodObserver } from "../pod-http.ts";
import type { ApiObserver } from "../kubernetes/request.ts";
import type { Counter, Gauge, Histogram } from "prom-client";

interface GroupKey {
  readonly namespace: string;
  readonly group: string;
}

export interface Metrics {
  /** Measures the calls of a Cluster. */
  readonly observer: ApiObserver;
  /** Measures the requests to pods. */
  readonly podObserver: PodObserver;
  /** Measures inbound requests. */
  readonly webhooks: WebhookMetrics;
  readonly budgets: BudgetMetrics;
  tickDone(result: string): void;
  reconcileStarted(group: GroupKey): void;
  /** `finishedAt` is the timestamp of a success. */
  reconcileDone(
    group: GroupKey,
    outcome: { readonly seconds: number; readonly failed: boolean; readonly finishedAt: Date },
  ): void;
  podReplaced(group: GroupKey): void;
  /** The reason of the group's first hold; undefined without one. */
  groupHeld(group: GroupKey, reason: string | undefined): void;
  /** Drops the series of every group that is not among `living` (§1.8). */
  keepGroups(living: Iterable<GroupKey>): void;
  /** Replaces the series: removed webhooks lose theirs. */
  failurePolicies(inForce: readonly FailurePolicy[]): void;
  /** The expiry of the installation's certificate; undefined removes it. */
  certificateExpiry(namespace: string, at: Date | undefined): void;
  /** A pass over the nodes has ended; milliseconds since the epoch. */
  nodesPassed(at: number): void;
  /** The series that are kept beyond the process. */
  readKept(): Promise<Samples>;
  /** Replaces the series that are shown beside those of the process. */
  show(samples: Samples): void;
  /** All metrics in Prometheus' text format. */
  render(): Promise<string>;
}

/** Upper bound of the series of a metric with label values that users choose. */
const MAX_SERIES = 200;
/** Rollout groups with their own series; further groups share one series for counters and have no gauges. */
export const MAX_GROUPS = 1000;
const MAX_WEBHOOKS = 100;

const amongOurs = (value: string, ours: ReadonlySet<string>): string => (ours.has(value) ? value : OTHER);

/** New metrics, all at zero. */
export function createMetrics(): Metrics {
  const registry = createRegistry();
  const { counter, gauge, histogram } = registry;
  for (const row of Object.values(METRICS) as MetricRow[]) if (row.foreign) registry.foreign(row);

  const apiRequests = histogram(METRICS.apiRequests);
  const rateLimited = counter(METRICS.rateLimited);
  const podRequests = histogram(METRICS.podRequests);
  const clusterRefused = counter(METRICS.clusterRefused);
  const groupReconciles = counter(METRICS.groupReconciles);
  const groupFailures = counter(METRICS.groupFailures);
  const groupDuration = histogram(METRICS.groupDuration);
  const groupSuccess = gauge(METRICS.groupSuccess);
  const ticks = counter(METRICS.ticks);
  const podsReplaced = counter(METRICS.podsReplaced);
  const blocked = gauge(METRICS.groupHeld);
  const failurePolicy = gauge(METRICS.failurePolicy);
  const certificateExpiry = gauge(METRICS.certificateExpiry);
  const nodesLastPass = gauge(METRICS.nodesLastPass);
  // A metric without labels would otherwise be shown as 0 by processes that have had no pass.
  nodesLastPass.remove({});

  const apiSeries = limitSeries(MAX_SERIES);
  // Users choose paths in annotations, and pods choose statuses.
  const podSeries = limitSeries(MAX_SERIES);
  const refusedSeries = limitSeries(MAX_SERIES);

  const keyOf = ({ namespace, group }: GroupKey): string => `${namespace}/${group}`;
  const known = new Map<string, GroupKey>();
  const reasons = new Map<string, string>();
  const isKnown = (group: GroupKey): boolean => {
    if (known.size < MAX_GROUPS) known.set(keyOf(group), group);
    return known.has(keyOf(group));
  };
  const labelsOf = (group: GroupKey) =>
    isKnown(group)
      ? { namespace: group.namespace, rollout_group: group.group }
      : { namespace: OTHER, rollout_group: OTHER };

  const groupHeld = (group: GroupKey, reason: string | undefined): void => {
    if (!isKnown(group)) return;
    const before = reasons.get(keyOf(group));
    if (before !== undefined && before !== reason) blocked.remove({ ...labelsOf(group), reason: before });
    reasons.delete(keyOf(group));
    if (reason === undefined) return;
    reasons.set(keyOf(group), reason);
    blocked.set({ ...labelsOf(group), reason }, 1);
  };

  return {
    observer: {
      answered: ({ path, method, status, seconds }) =>
        apiRequests.observe(apiSeries({ path: amongOurs(path, OWN_PATHS), method, status_code: status }), seconds),
      rateLimited: (group) => rateLimited.inc({ api_group: amongOurs(group, OWN_GROUPS) }),
    },
    podObserver: {
      podAnswered: ({ path, method, status, seconds }) =>
        podRequests.observe(podSeries({ path, method, status_code: status }), seconds),
      clusterRefused: ({ method, namespace }) =>
        clusterRefused.inc(refusedSeries({ method, protocol: "http", request_cluster: namespace })),
    },
    webhooks: createWebhookMetrics({ counter, gauge, histogram }),
    budgets: createBudgetMetrics({ counter, gauge }),
    tickDone: (result) => ticks.inc({ result }),
    reconcileStarted: (group) => {
      groupReconciles.inc(labelsOf(group));
      // Present from the start, as alerts need it (§1.3.1). The time of the last success is not, as a process does not
      // know its predecessors'.
      groupFailures.inc(labelsOf(group), 0);
    },
    reconcileDone: (group, { seconds, failed, finishedAt }) => {
      groupDuration.observe(labelsOf(group), seconds);
      if (failed) groupFailures.inc(labelsOf(group));
      else if (isKnown(group)) groupSuccess.set(labelsOf(group), finishedAt.getTime() / 1000);
    },
    podReplaced: (group) => podsReplaced.inc(labelsOf(group)),
    groupHeld,
    keepGroups: (living) => {
      const kept = new Set([...living].map(keyOf));
      for (const [key, group] of known) {
        if (kept.has(key)) continue;
        groupHeld(group, undefined);
        for (const metric of [groupReconciles, groupFailures, groupDuration, groupSuccess, podsReplaced])
          metric.remove(labelsOf(group));
        known.delete(key);
      }
    },
    certificateExpiry: (namespace, at) => {
      if (at) certificateExpiry.set({ namespace }, at.getTime() / 1000);
      else certificateExpiry.remove({ namespace });
    },
    failurePolicies: (inForce) => {
      failurePolicy.reset();
      for (const { type, webhook, policy } of inForce.slice(0, MAX_WEBHOOKS)) {
        for (const one of ["Fail", "Ignore"]) failurePolicy.set({ type, webhook, policy: one }, one === policy ? 1 : 0);
      }
    },
    nodesPassed: (at) => nodesLastPass.set(at / 1000),
    readKept: async () =>
      new Map(
        await Promise.all(KEPT.map(async (row) => [row.name, nameProcess(row, await registry.read(row))] as const)),
      ),
    show: registry.show,
    render: registry.render,
  };
}

interface ServedRequest {
  readonly method: string;
  readonly route: string;
  readonly status: number;
  readonly seconds: number;
  readonly receivedBytes: number;
  readonly sentBytes: number;
}

interface WebhookAnswer {
  readonly webhook: string;
  readonly result: "allowed" | "denied" | "fault";
  readonly reason: string;
}

export interface WebhookMetrics {
  requestStarted(method: string, route: string): void;
  requestDone(request: ServedRequest): void;
  answered(answer: WebhookAnswer): void;
}

interface Makers {
  readonly counter: (row: MetricRow) => Counter;
  readonly gauge: (row: MetricRow) => Gauge;
  readonly histogram: (row: MetricRow) => Histogram;
}

function createWebhookMetrics({ counter, gauge, histogram }: Makers): WebhookMetrics {
  const duration = histogram(METRICS.requests);
  const received = histogram(METRICS.requestBytes);
  const sent = histogram(METRICS.responseBytes);
  const inFlight = gauge(METRICS.requestsInFlight);
  const answers = counter(METRICS.webhookAnswers);
  return {
    requestStarted: (method, route) => inFlight.inc({ method: labelOf(method), route }),
    requestDone: ({ route, status, seconds, receivedBytes, sentBytes, ...request }) => {
      const method = labelOf(request.method);
      inFlight.dec({ method, route });
      duration.observe({ method, route, status_code: String(status), ws: "false" }, seconds);
      received.observe({ method, route }, receivedBytes);
      sent.observe({ method, route }, sentBytes);
    },
    answered: ({ webhook, result, reason }) => answers.inc({ webhook, result, reason }),
  };
}

/** The methods with their own series; callers choose the method, and every other one is refused. */
function labelOf(method: string): string {
  return method === "POST" ? method : OTHER;
}

export interface BudgetMetrics {
  /** Counts a decision in progress. */
  deciding<T>(decision: Promise<T>): Promise<T>;
  decided(verdict: { readonly reason: string; readonly status: number }): void;
  /** A budget was read. */
  observed(result: "updated" | "invalid" | "ignored"): void;
}

function createBudgetMetrics({ counter, gauge }: Pick<Makers, "counter" | "gauge">): BudgetMetrics {
  const evictions = counter(METRICS.evictions);
  const inFlight = gauge(METRICS.evictionsInFlight);
  const observed = counter(METRICS.budgetsObserved);
  return {
    deciding: (decision) => {
      inFlight.inc();
      return decision.finally(() => inFlight.dec());
    },
    decided: ({ reason, status }) => evictions.inc({ reason, status: String(status) }),
    observed: (result) => observed.inc({ result }),
  };
}

/** The label value for everything beyond the bound. */
export const OTHER = "other";

const MAX_VALUE_LENGTH = 200;

/**
 * Returns the label set to record: the first `most` sets unchanged; for any further set, and for one with a value of
 * more than 200 characters, every label is `other`. So a metric has at most `most + 1` series.
 */
function limitSeries(
  most: number,
): <Labels extends Readonly<Record<string, string>>>(labels: Labels) => Readonly<Record<keyof Labels, string>> {
  const known = new Set<string>();
  return (labels) => {
    const values = Object.values(labels);
    const key = JSON.stringify(values);
    if (known.has(key)) return labels;
    if (known.size === most || values.some(({ length }) => length > MAX_VALUE_LENGTH))
      return Object.fromEntries(Object.keys(labels).map((label) => [label, OTHER])) as Record<
        keyof typeof labels,
        string
      >;
    known.add(key);
    return labels;
  };
}
