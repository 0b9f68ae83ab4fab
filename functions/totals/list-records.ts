/**
 * Lists the sources of the series in `/metrics`: the statuses of rollout groups, PhasedRollouts and disruption budgets.
 */
import { absent, hasCode } from "../../infra/errors.ts";
import type { Call, Cluster } from "../../infra/kubernetes/cluster.ts";
import { collectRead } from "../../infra/kubernetes/collect.ts";
import {
  type DisruptionBudget,
  disruptionBudgets,
  type PhasedRolloutObject,
  phasedRollouts,
  type RolloutGroup,
  rolloutGroups,
} from "../../infra/kubernetes/custom-resources.ts";
import type { Protection } from "../../reconciler/budget/protection.ts";
import { readStoredGroup } from "../../reconciler/group-status/act/stored-group.ts";
import { readStatus } from "../../reconciler/phased/status.ts";
import type { GroupRecord, PhaseRecord, ProtectionRecord } from "./group-samples.ts";

const inScope = (scope: string) => (scope === "" ? {} : { namespace: scope });

/** Without budgets that have not been examined yet; empty if the cluster knows no budgets. */
export async function listProtections(cluster: Cluster, scope: string, call: Call): Promise<ProtectionRecord[]> {
  const list = cluster.list(disruptionBudgets, inScope(scope), call);
  return ((await collectRead(list, readProtection).catch(absent)) ?? []).filter((record) => record !== undefined);
}

function readProtection({ metadata, status }: DisruptionBudget): ProtectionRecord | undefined {
  const { conditions = [] } = (status ?? {}) as Partial<Protection>;
  const found = conditions.find(({ type }) => type === "Protecting");
  const { namespace = "", name = "" } = metadata;
  return found && { namespace, name, isProtecting: found.status === "True", reason: found.reason };
}

/** Empty if the cluster knows no PhasedRollout, or if the functions may not list them: they work without. */
export async function listPhases(cluster: Cluster, scope: string, call: Call): Promise<PhaseRecord[]> {
  const read = ({ metadata: { namespace = "", name = "" }, status }: PhasedRolloutObject): PhaseRecord => ({
    namespace,
    name,
    phase: readStatus(status).phase,
  });
  return await collectRead(cluster.list(phasedRollouts, inScope(scope), call), read).catch((error: unknown) => {
    if (!hasCode(error, "NotFound", "Forbidden")) throw error;
    return [];
  });
}

/** Empty if the cluster knows no RolloutGroup. */
export async function listGroups(cluster: Cluster, scope: string, call: Call): Promise<GroupRecord[]> {
  const list = cluster.list(rolloutGroups, inScope(scope), call);
  return ((await collectRead(list, readRecord).catch(absent)) ?? []).filter((record) => record !== undefined);
}

function readRecord(object: RolloutGroup): GroupRecord | undefined {
  if (!object.status) return undefined;
  const { deadlineMs, status } = readStoredGroup(object);
  return { namespace: object.metadata.namespace ?? "", deadline: deadlineMs / 1000, status };
}
