/**
 * Shows the reconciler's totals in the functions' `/metrics`, read from RolloutGroups, disruption budgets and the
 * reconciler's Lease.
 */
import { absent, hasCode } from "../../infra/errors.ts";
import type { Call, Cluster } from "../../infra/kubernetes/cluster.ts";
import { type LeaseRef, getLease } from "../../infra/kubernetes/lease-object.ts";
import { MAX_GROUPS, type Metrics } from "../../infra/metrics/metrics.ts";
import { TOTALS, parseTotals } from "../../infra/metrics/totals.ts";
import { type GroupRecord, type ProtectionRecord, sampleGroups, sampleProtections } from "./group-samples.ts";
import { type ShownOnce, showOnce } from "./show-once.ts";
import { collectRead, readEach } from "../../infra/kubernetes/collect.ts";
import {
  type DisruptionBudget,
  type RolloutGroup,
  disruptionBudgets,
  rolloutGroups,
} from "../../infra/kubernetes/custom-resources.ts";
import type { Protection } from "../../reconciler/budget/protection.ts";
import { readStoredGroup } from "../../reconciler/group-status/act/stored-group.ts";

interface TotalsOptions extends Pick<ShownOnce, "cluster" | "clock" | "log" | "metrics" | "identity"> {
  /** "" stands for all namespaces. */
  readonly namespaces: readonly string[];
  readonly reconciler: LeaseRef;
}

/** Metrics that read the totals before each scrape. Without them, the process's own are shown. */
export function showTotals(options: TotalsOptions): Pick<Metrics, "render"> {
  const { namespace, name } = options.reconciler;
  const lease = { namespace, name: `${name}-metrics` };
  const what = "the reconciler's totals";
  return showOnce({ ...options, lease, what, gather: (call, omit) => gather(options, call, omit) });
}

async function gather(
  { cluster, clock, namespaces, reconciler }: TotalsOptions,
  call: Call,
  omit: (error: unknown) => void,
) {
  const lease = await getLease(cluster, reconciler, call);
  const forbidden: unknown[] = [];
  // A namespace that we may not read, for example because it is gone, does not hide the others; nor does a kind.
  async function readKind<T>(read: (scope: string) => Promise<T[]>): Promise<readonly T[]> {
    try {
      const { results } = await readEach(namespaces, read, (error) => !hasCode(error, "Forbidden"));
      return results.flat();
    } catch (error) {
      if (!hasCode(error, "Forbidden")) throw error;
      forbidden.push(error);
      return [];
    }
  }
  const groups = await readKind((scope) => listGroups(cluster, scope, call));
  const protections = await readKind((scope) => listProtections(cluster, scope, call));
  if (forbidden.length === 2) throw forbidden[0];
  for (const error of forbidden) omit(error);
  const totals = parseTotals(lease?.metadata?.annotations?.[TOTALS]);
  const now = clock.now();
  return new Map([...sampleGroups(groups, totals, { most: MAX_GROUPS, now }), sampleProtections(protections)]);
}

const inScope = (scope: string) => (scope === "" ? {} : { namespace: scope });

/** Without budgets that have not been examined yet; empty if the cluster knows no budgets. */
async function listProtections(cluster: Cluster, scope: string, call: Call): Promise<ProtectionRecord[]> {
  const list = cluster.list(disruptionBudgets, inScope(scope), call);
  return ((await collectRead(list, readProtection).catch(absent)) ?? []).filter((record) => record !== undefined);
}

function readProtection({ metadata, status }: DisruptionBudget): ProtectionRecord | undefined {
  const { conditions = [] } = (status ?? {}) as Partial<Protection>;
  const found = conditions.find(({ type }) => type === "Protecting");
  const { namespace = "", name = "" } = metadata;
  return found && { namespace, name, isProtecting: found.status === "True", reason: found.reason };
}

/** Empty if the cluster knows no RolloutGroup. */
async function listGroups(cluster: Cluster, scope: string, call: Call): Promise<GroupRecord[]> {
  const list = cluster.list(rolloutGroups, inScope(scope), call);
  return ((await collectRead(list, readRecord).catch(absent)) ?? []).filter((record) => record !== undefined);
}

function readRecord(object: RolloutGroup): GroupRecord | undefined {
  if (!object.status) return undefined;
  const { deadlineMs, status } = readStoredGroup(object);
  return { namespace: object.metadata.namespace ?? "", deadline: deadlineMs / 1000, status };
}
