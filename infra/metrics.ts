/** What the process counts and measures, in a registry of its own. */
import { Counter, Gauge, Histogram, Registry } from "prom-client";
import { createBudgetMetrics, type BudgetMetrics } from "./budget-metrics.ts";
import { METRICS, type MetricRow } from "./metric-table.ts";
import type { FailurePolicy } from "./certs/configurations.ts";
import type { PodObserver } from "./pod-http.ts";
import type { Observer } from "./request.ts";
import { createWebhookMetrics, type WebhookMetrics } from "./webhook-metrics.ts";

export interface GroupKey {
  readonly namespace: string;
  readonly group: string;
}

export interface Metrics {
  /** Measures the calls of a Cluster. */
  readonly observer: Observer;
  /** Measures the requests to pods. */
  readonly podObserver: PodObserver;
  /** Measures inbound requests. */
  readonly webhooks: WebhookMetrics;
  readonly budgets: BudgetMetrics;
  tickDone(result: string): void;
  reconcileStarted(group: GroupKey): void;
  /** `finishedAt` is what a success is stamped with. */
  reconcileDone(group: GroupKey, outcome: { readonly seconds: number; readonly failed: boolean; readonly finishedAt: Date }): void;
  podReplaced(group: GroupKey): void;
  /** The one reason that holds the group back, or none. */
  groupBlocked(group: GroupKey, reason: string | undefined): void;
  /** Drops the series of every group that is not among `living` [1.8]. */
  keepGroups(living: Iterable<GroupKey>): void;
  /** The webhooks there are, and no others: those that are gone lose their series. */
  failurePolicies(inForce: readonly FailurePolicy[]): void;
  /** When the certificate of this installation expires, if it has one that is ours to know. */
  certificateExpiry(namespace: string, at: Date | undefined): void;
  /** All of it in Prometheus' text format. */
  render(): Promise<string>;
  readonly contentType: string;
}

const MOST_POD_PATHS = 50;
const LONGEST_POD_PATH = 200;

/** New metrics, all at zero. */
export function createMetrics(): Metrics {
  const registry = new Registry();
  const options = ({ name, help, labels }: MetricRow) => ({ name, help, labelNames: labels, registers: [registry] });
  const counter = (row: MetricRow) => new Counter(options(row));
  const gauge = (row: MetricRow) => new Gauge(options(row));
  const histogram = (row: MetricRow) => new Histogram({ ...options(row), buckets: [...(row.buckets ?? [])] });

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
  const blocked = gauge(METRICS.groupBlocked);
  const failurePolicy = gauge(METRICS.failurePolicy);
  const certificateExpiry = gauge(METRICS.certificateExpiry);

  // Paths come from annotations, which anybody may write who may write a StatefulSet.
  const podPaths = new Set<string>();
  const podPath = (path: string): string => {
    if (podPaths.size < MOST_POD_PATHS && path.length <= LONGEST_POD_PATH) podPaths.add(path);
    return podPaths.has(path) ? path : "other";
  };

  const labelsOf = ({ namespace, group }: GroupKey) => ({ namespace, rollout_group: group });
  const keyOf = ({ namespace, group }: GroupKey): string => `${namespace}/${group}`;
  const known = new Map<string, GroupKey>();
  const reasons = new Map<string, string>();

  const groupBlocked = (group: GroupKey, reason: string | undefined): void => {
    const before = reasons.get(keyOf(group));
    if (before !== undefined && before !== reason) blocked.remove({ ...labelsOf(group), reason: before });
    reasons.delete(keyOf(group));
    if (reason === undefined) return;
    known.set(keyOf(group), group);
    reasons.set(keyOf(group), reason);
    blocked.set({ ...labelsOf(group), reason }, 1);
  };

  return {
    observer: {
      answered: ({ path, method, status, seconds }) => apiRequests.observe({ path, method, status_code: status }, seconds),
      rateLimited: (group) => rateLimited.inc({ api_group: group }),
    },
    podObserver: {
      podAnswered: ({ path, method, status, seconds }) =>
        podRequests.observe({ path: podPath(path), method, status_code: status }, seconds),
      clusterRefused: ({ method, namespace }) => clusterRefused.inc({ method, protocol: "http", request_cluster: namespace }),
    },
    webhooks: createWebhookMetrics({ counter, gauge, histogram }),
    budgets: createBudgetMetrics({ counter, gauge }),
    tickDone: (result) => ticks.inc({ result }),
    reconcileStarted: (group) => {
      groupReconciles.inc(labelsOf(group));
      // There from the start, as alerts on it need [1.3.1]. The last success is not: a process of a minute does not know of those before it.
      groupFailures.inc(labelsOf(group), 0);
      known.set(keyOf(group), group);
    },
    reconcileDone: (group, { seconds, failed, finishedAt }) => {
      groupDuration.observe(labelsOf(group), seconds);
      if (failed) groupFailures.inc(labelsOf(group));
      else groupSuccess.set(labelsOf(group), finishedAt.getTime() / 1000);
    },
    podReplaced: (group) => podsReplaced.inc(labelsOf(group)),
    groupBlocked,
    keepGroups: (living) => {
      const kept = new Set([...living].map(keyOf));
      for (const [key, group] of known) {
        if (kept.has(key)) continue;
        groupBlocked(group, undefined);
        for (const metric of [groupReconciles, groupFailures, groupDuration, groupSuccess, podsReplaced]) metric.remove(labelsOf(group));
        known.delete(key);
      }
    },
    certificateExpiry: (namespace, at) => {
      if (at) certificateExpiry.set({ namespace }, at.getTime() / 1000);
      else certificateExpiry.remove({ namespace });
    },
    failurePolicies: (inForce) => {
      failurePolicy.reset();
      for (const { type, webhook, policy } of inForce) {
        for (const one of ["Fail", "Ignore"]) failurePolicy.set({ type, webhook, policy: one }, one === policy ? 1 : 0);
      }
    },
    render: () => registry.metrics(),
    contentType: registry.contentType,
  };
}
