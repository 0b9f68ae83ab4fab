/**
 * Shows the reconciler's totals in the functions' `/metrics`, read from RolloutGroups, PhasedRollouts and the
 * reconciler's Lease.
 */
import { absent, hasCode } from "../../infra/errors.ts";
import type { Call, Cluster } from "../../infra/kubernetes/cluster.ts";
import { getLease, type LeaseRef } from "../../infra/kubernetes/lease-object.ts";
import { phasedRollouts, rolloutGroups } from "../../infra/kubernetes/resources.ts";
import { MAX_GROUPS, type Metrics } from "../../infra/metrics/metrics.ts";
import { parseTotals, TOTALS } from "../../infra/metrics/totals.ts";
import { readStatus } from "../../reconciler/phased/status.ts";
import { readStoredGroup } from "../../reconciler/group-status/act/stored-group.ts";
import { type GroupRecord, type PhaseRecord, sampleGroups, samplePhases } from "./group-samples.ts";
import { showOnce, type ShownOnce } from "./show-once.ts";

export interface TotalsOptions extends Pick<ShownOnce, "cluster" | "clock" | "log" | "metrics" | "identity"> {
  /** "" stands for all namespaces. */
  readonly namespaces: readonly string[];
  /** The reconciler's Lease. */
  readonly reconciler: LeaseRef;
}

/** Metrics that read the totals before each scrape. Without them, the process's own are shown. */
export function showTotals(options: TotalsOptions): Pick<Metrics, "render" | "contentType"> {
  const { namespace, name } = options.reconciler;
  const lease = { namespace, name: `${name}-metrics` };
  return showOnce({ ...options, lease, what: "the reconciler's totals", gather: (call) => gather(options, call) });
}

async function gather({ cluster, namespaces, reconciler }: TotalsOptions, call: Call) {
  const lease = await getLease(cluster, reconciler, call);
  const groups: GroupRecord[] = [];
  const phases: PhaseRecord[] = [];
  for (const scope of namespaces) {
    groups.push(...(await listGroups(cluster, scope, call)));
    phases.push(...(await listPhases(cluster, scope, call)));
  }
  const totals = parseTotals(lease?.metadata?.annotations?.[TOTALS]);
  return new Map([...sampleGroups(groups, totals, MAX_GROUPS), samplePhases(phases)]);
}

/** None if the cluster knows no PhasedRollout, or keeps them from the functions, which work without. */
async function listPhases(cluster: Cluster, scope: string, call: Call): Promise<PhaseRecord[]> {
  const phases: PhaseRecord[] = [];
  try {
    for await (const { items } of cluster.list(phasedRollouts, scope === "" ? {} : { namespace: scope }, call))
      for (const { metadata, status } of items)
        phases.push({
          namespace: metadata.namespace ?? "",
          name: metadata.name ?? "",
          phase: readStatus(status).phase,
        });
  } catch (error) {
    if (!hasCode(error, "NotFound", "Forbidden")) throw error;
  }
  return phases;
}

/** None if the cluster knows no RolloutGroup. */
async function listGroups(cluster: Cluster, scope: string, call: Call): Promise<GroupRecord[]> {
  const groups: GroupRecord[] = [];
  const read = async (): Promise<void> => {
    for await (const { items } of cluster.list(rolloutGroups, scope === "" ? {} : { namespace: scope }, call))
      for (const object of items) {
        const { deadlineMs, status } = readStoredGroup(object);
        if (object.status)
          groups.push({ namespace: object.metadata.namespace ?? "", deadline: deadlineMs / 1000, status });
      }
  };
  await read().catch(absent);
  return groups;
}
