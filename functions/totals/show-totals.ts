/**
 * Shows the reconciler's totals in the functions' `/metrics`, read from RolloutGroups, PhasedRollouts, disruption budgets
 * and the reconciler's Lease.
 */
import { hasCode } from "../../infra/errors.ts";
import type { Call } from "../../infra/kubernetes/cluster.ts";
import { getLease, type LeaseRef } from "../../infra/kubernetes/lease-object.ts";
import { MAX_GROUPS, type Metrics } from "../../infra/metrics/metrics.ts";
import { parseTotals, TOTALS } from "../../infra/metrics/totals.ts";
import {
  type GroupRecord,
  type PhaseRecord,
  type ProtectionRecord,
  sampleGroups,
  samplePhases,
  sampleProtections,
} from "./group-samples.ts";
import { listGroups, listPhases, listProtections } from "./list-records.ts";
import { showOnce, type ShownOnce } from "./show-once.ts";

interface TotalsOptions extends Pick<ShownOnce, "cluster" | "clock" | "log" | "metrics" | "identity"> {
  /** "" stands for all namespaces. */
  readonly namespaces: readonly string[];
  /** The reconciler's Lease. */
  readonly reconciler: LeaseRef;
}

/** Metrics that read the totals before each scrape. Without them, the process's own are shown. */
export function showTotals(options: TotalsOptions): Pick<Metrics, "render" | "typeFor"> {
  const { namespace, name } = options.reconciler;
  const lease = { namespace, name: `${name}-metrics` };
  return showOnce({ ...options, lease, what: "the reconciler's totals", gather: (call) => gather(options, call) });
}

async function gather({ cluster, clock, namespaces, reconciler }: TotalsOptions, call: Call) {
  const lease = await getLease(cluster, reconciler, call);
  const groups: GroupRecord[] = [];
  const phases: PhaseRecord[] = [];
  const protections: ProtectionRecord[] = [];
  const failures: unknown[] = [];
  for (const scope of namespaces)
    try {
      groups.push(...(await listGroups(cluster, scope, call)));
      phases.push(...(await listPhases(cluster, scope, call)));
      protections.push(...(await listProtections(cluster, scope, call)));
    } catch (error) {
      // A namespace that we may not read, for example because it is gone, does not hide the others.
      if (!hasCode(error, "Forbidden")) throw error;
      failures.push(error);
    }
  if (failures.length > 0 && failures.length === namespaces.length) throw failures[0];
  const totals = parseTotals(lease?.metadata?.annotations?.[TOTALS]);
  const now = clock.now();
  return new Map([
    ...sampleGroups(groups, totals, { most: MAX_GROUPS, now }),
    samplePhases(phases),
    sampleProtections(protections),
  ]);
}
