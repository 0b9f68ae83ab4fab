/** The metrics of a process, in its own registry. */
import { OWN_GROUPS, OWN_PATHS } from "../kubernetes/api-path.ts";
import { type MetricRow, type Samples, createRegistry } from "./registry.ts";
import { METRICS } from "./tables/metric-table.ts";
import { KEPT, nameProcess } from "./totals.ts";
import type { FailurePolicy } from "../certs/configurations.ts";
import type { PodObserver } from "../pod-http.ts";
import type { ApiObserver } from "../kubernetes/request.ts";

interface GroupKey {
  readonly namespace: string;
  readonly group: string;
}

export type Metrics = ReturnType<typeof createMetrics>;

/** Upper bound of the series of a metric with label values that users choose. */
const MAX_SERIES = 200;
/** Rollout groups with their own series; further groups share one series for counters and have no gauges. */
export const MAX_GROUPS = 1000;
const MAX_WEBHOOKS = 100;

const amongOurs = (value: string, ours: ReadonlySet<string>): string => (ours.has(value) ? value : OTHER);

export function createMetrics() {
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

  /** The reason of the group's first hold; undefined without one. */
  const groupHeld = (group: GroupKey, reason: string | undefined): void => {
    if (!isKnown(group)) return;
    const before = reasons.get(keyOf(group));
    if (before !== undefined && before !== reason) blocked.remove({ ...labelsOf(group), reason: before });
    reasons.delete(keyOf(group));
    if (reason === undefined) return;
    reasons.set(keyOf(group), reason);
    blocked.set({ ...labelsOf(group), reason }, 1);
  };

  const observer: ApiObserver = {
    answered: ({ path, method, status, seconds }) =>
      apiRequests.observe(apiSeries({ path: amongOurs(path, OWN_PATHS), method, status_code: status }), seconds),
    rateLimited: (group) => rateLimited.inc({ api_group: amongOurs(group, OWN_GROUPS) }),
  };
  const podObserver: PodObserver = {
    podAnswered: ({ path, method, status, seconds }) =>
      podRequests.observe(podSeries({ path, method, status_code: status }), seconds),
    clusterRefused: ({ method, namespace }) =>
      clusterRefused.inc(refusedSeries({ method, protocol: "http", request_cluster: namespace })),
  };

  return {
    observer,
    podObserver,
    webhooks: createWebhookMetrics({ counter, gauge, histogram }),
    budgets: createBudgetMetrics({ counter, gauge }),
    tickDone: (result: string): void => ticks.inc({ result }),
    reconcileStarted: (group: GroupKey): void => {
      groupReconciles.inc(labelsOf(group));
      // Present from the start, as alerts need it (§1.3.1). The time of the last success is not, as a process does not
      // know its predecessors'.
      groupFailures.inc(labelsOf(group), 0);
    },
    /** `finishedAt` is the timestamp of a success. */
    reconcileDone: (
      group: GroupKey,
      {
        seconds,
        failed,
        finishedAt,
      }: { readonly seconds: number; readonly failed: boolean; readonly finishedAt: Date },
    ): void => {
      groupDuration.observe(labelsOf(group), seconds);
      if (failed) groupFailures.inc(labelsOf(group));
      else if (isKnown(group)) groupSuccess.set(labelsOf(group), finishedAt.getTime() / 1000);
    },
    podReplaced: (group: GroupKey): void => podsReplaced.inc(labelsOf(group)),
    groupHeld,
    /** Drops the series of every group that is not among `living` (§1.8). */
    keepGroups: (living: Iterable<GroupKey>): void => {
      const kept = new Set([...living].map(keyOf));
      for (const [key, group] of known) {
        if (kept.has(key)) continue;
        groupHeld(group, undefined);
        for (const metric of [groupReconciles, groupFailures, groupDuration, groupSuccess, podsReplaced])
          metric.remove(labelsOf(group));
        known.delete(key);
      }
    },
    /** The expiry of the installation's certificate; undefined removes it. */
    certificateExpiry: (namespace: string, at: Date | undefined): void => {
      if (at) certificateExpiry.set({ namespace }, at.getTime() / 1000);
      else certificateExpiry.remove({ namespace });
    },
    /** Replaces the series: removed webhooks lose theirs. */
    failurePolicies: (inForce: readonly FailurePolicy[]): void => {
      failurePolicy.reset();
      for (const { type, webhook, policy } of inForce.slice(0, MAX_WEBHOOKS)) {
        for (const one of ["Fail", "Ignore"]) failurePolicy.set({ type, webhook, policy: one }, one === policy ? 1 : 0);
      }
    },
    /** A pass over the nodes has ended; milliseconds since the epoch. */
    nodesPassed: (at: number): void => nodesLastPass.set(at / 1000),
    /** The series that are kept beyond the process. */
    readKept: async (): Promise<Samples> =>
      new Map(
        await Promise.all(KEPT.map(async (row) => [row.name, nameProcess(row, await registry.read(row))] as const)),
      ),
    /** Replaces the series that are shown beside those of the process. */
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

export type WebhookMetrics = ReturnType<typeof createWebhookMetrics>;

type Makers = Pick<ReturnType<typeof createRegistry>, "counter" | "gauge" | "histogram">;

function createWebhookMetrics({ counter, gauge, histogram }: Makers) {
  const duration = histogram(METRICS.requests);
  const received = histogram(METRICS.requestBytes);
  const sent = histogram(METRICS.responseBytes);
  const inFlight = gauge(METRICS.requestsInFlight);
  const answers = counter(METRICS.webhookAnswers);
  return {
    requestStarted: (method: string, route: string): void => inFlight.inc({ method: labelOf(method), route }),
    requestDone: ({ route, status, seconds, receivedBytes, sentBytes, ...request }: ServedRequest): void => {
      const method = labelOf(request.method);
      inFlight.dec({ method, route });
      duration.observe({ method, route, status_code: String(status), ws: "false" }, seconds);
      received.observe({ method, route }, receivedBytes);
      sent.observe({ method, route }, sentBytes);
    },
    answered: ({ webhook, result, reason }: WebhookAnswer): void => answers.inc({ webhook, result, reason }),
  };
}

/** The methods with their own series; callers choose the method, and every other one is refused. */
function labelOf(method: string): string {
  return method === "POST" ? method : OTHER;
}

export type BudgetMetrics = ReturnType<typeof createBudgetMetrics>;

function createBudgetMetrics({ counter, gauge }: Pick<Makers, "counter" | "gauge">) {
  const evictions = counter(METRICS.evictions);
  const inFlight = gauge(METRICS.evictionsInFlight);
  const observed = counter(METRICS.budgetsObserved);
  return {
    /** Counts a decision in progress. */
    deciding: <T>(decision: Promise<T>): Promise<T> => {
      inFlight.inc();
      return decision.finally(() => inFlight.dec());
    },
    decided: ({ reason, status }: { readonly reason: string; readonly status: number }): void =>
      evictions.inc({ reason, status: String(status) }),
    observed: (result: "updated" | "invalid" | "ignored"): void => observed.inc({ result }),
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
