/** Shows the reconciler's totals in the functions' `/metrics`, read from RolloutGroups and from the reconciler's Lease. */
import { absent } from "../../infra/errors.ts";
import type { Call, Cluster } from "../../infra/kubernetes/cluster.ts";
import { getLease, type LeaseRef } from "../../infra/kubernetes/lease-object.ts";
import { rolloutGroups } from "../../infra/kubernetes/resources.ts";
import { MAX_GROUPS, type Metrics } from "../../infra/metrics/metrics.ts";
import { parseTotals, TOTALS } from "../../infra/metrics/totals.ts";
import { readStoredGroup } from "../../reconciler/group-status/act/stored-group.ts";
import { type GroupRecord, sampleGroups } from "./group-samples.ts";
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
  for (const scope of namespaces) groups.push(...(await listGroups(cluster, scope, call)));
  return sampleGroups(groups, parseTotals(lease?.metadata?.annotations?.[TOTALS]), MAX_GROUPS);
}

/** None if the cluster knows no RolloutGroup. */
async function listGroups(cluster: Cluster, scope: string, call: Call): Promise<GroupRecord[]> {
  const groups: GroupRecord[] = [];
  const read = async (): Promise<void> => {
    for await (const { items } of cluster.list(rolloutGroups, scope === "" ? {} : { namespace: scope }, call))
      for (const object of items) {
        const { deadlineMs, status } = readStoredGroup(object);
        if (object.status) groups.push({ namespace: object.metadata.namespace ?? "", deadline: deadlineMs / 1000, status });
      }
  };
  await read().catch(absent);
  return groups;
}
