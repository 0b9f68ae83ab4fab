/** The metrics of a process, in its own registry. */
import { OWN_GROUPS, OWN_PATHS } from "../kubernetes/api-path.ts";
import { createBudgetMetrics, type BudgetMetrics } from "./budget-metrics.ts";
import { type CheckMetrics, createCheckMetrics } from "./check-metrics.ts";
import type { MetricRow } from "./tables/metric-row.ts";
import { METRICS } from "./tables/metric-table.ts";
import { createRegistry, type Samples } from "./registry.ts";
import { KEPT, nameProcess } from "./totals.ts";
import type { FailurePolicy } from "../certs/configurations.ts";
import type { PodObserver } from "../pod-http.ts";
import type { ApiObserver } from "../kubernetes/request.ts";
import { limitSeries, OTHER } from "./series-limit.ts";
import { createWebhookMetrics, type WebhookMetrics } from "./webhook-metrics.ts";

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
  readonly phased: CheckMetrics;
  readonly gates: CheckMetrics;
  /** The calls per second and API group that the process allows itself; 0 means no limit, and has no series. */
  apiLimited(qps: number): void;
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
  /** The content type for a scraper, by its header Accept. */
  typeFor(accept: string | undefined): string;
  /** All metrics in Prometheus' text format, unless another type is given. */
  render(contentType?: string): Promise<string>;
}

/** Upper bound of the series of a metric with label values that users choose. */
export const MAX_SERIES = 200;
/** Rollout groups with their own series; further groups share one series for counters and have no gauges. */
export const MAX_GROUPS = 1000;
export const MAX_WEBHOOKS = 100;

const amongOurs = (value: string, ours: ReadonlySet<string>): string => (ours.has(value) ? value : OTHER);

/** New metrics, all at zero. */
export function createMetrics(): Metrics {
  const registry = createRegistry();
  const { counter, gauge, histogram, noteExemplar } = registry;
  for (const row of Object.values(METRICS) as MetricRow[]) if (row.foreign) registry.foreign(row);

  const apiRequests = histogram(METRICS.apiRequests);
  const rateLimited = counter(METRICS.rateLimited);
  const rateLimit = gauge(METRICS.rateLimit);
  rateLimit.remove({});
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
    webhooks: createWebhookMetrics({ counter, gauge, histogram, noteExemplar }),
    budgets: createBudgetMetrics({ counter, gauge }),
    phased: createCheckMetrics(METRICS.phasedChecks, { counter }),
    gates: createCheckMetrics(METRICS.gateChecks, { counter }),
    apiLimited: (qps) => {
      if (qps > 0) rateLimit.set({}, qps);
    },
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
    typeFor: registry.typeFor,
  };
}
