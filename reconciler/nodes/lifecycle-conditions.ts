/**
 * The lifecycle conditions of a Node (KEP-5683, alpha in Kubernetes 1.37), which any authorized actor may write: those
 * that we write about a node under update, and those of others. Opt-in (§17.13). Ours have our reason; a condition
 * that is True with another one is somebody else's, and is neither changed nor cleared.
 *
 *   phase                            MaintenancePlanned  DrainInProgress  Drained  MaintenanceInProgress
 *   Starting, Staging, Holding       True
 *   Draining                         True                True
 *   Rebooting                                                             True     True
 *   Returning                                                                      True
 *   Monitoring, Recovering                                                         True while our cordon is there
 *   no slot
 */
import type { Node } from "../../infra/kubernetes/resources.ts";
import { formatTimestamp } from "../../infra/timestamp.ts";
import type { ActiveNode, NodePhase } from "./policy-status.ts";

export const LIFECYCLE_TYPES = ["DrainInProgress", "Drained", "MaintenancePlanned", "MaintenanceInProgress"] as const;
export type LifecycleType = (typeof LIFECYCLE_TYPES)[number];

/** The condition of a node shutdown, by any writer and with any reason: it is read, and never written. */
const SHUTDOWN = "GracefulNodeShutdownInProgress";
const READ_TYPES: ReadonlySet<string> = new Set([...LIFECYCLE_TYPES, SHUTDOWN]);

/** The reason of all conditions that we write. */
export const OUR_REASON = "ZonewiseNodeUpdate";

export interface LifecycleCondition {
  readonly type: LifecycleType | typeof SHUTDOWN;
  readonly status: string;
  readonly reason: string;
  readonly message: string;
}

/** The conditions of a node that the rules know. */
export interface LifecycleNode {
  readonly name: string;
  readonly resourceVersion: string;
  readonly cordonedBy: string | undefined;
  /** Undefined where they are not asked for. */
  readonly lifecycle?: readonly LifecycleCondition[];
}

const isLifecycle = (type: string): type is LifecycleCondition["type"] => READ_TYPES.has(type);

/** The conditions of the five types, by any writer. */
export function readLifecycle(status: Node["status"]): LifecycleCondition[] {
  return (status?.conditions ?? []).flatMap(({ type, status, reason = "", message = "" }) =>
    isLifecycle(type) ? [{ type, status, reason, message }] : [],
  );
}

const isTrue = ({ status }: LifecycleCondition): boolean => status === "True";
const isOurs = ({ type, reason }: LifecycleCondition): boolean => type !== SHUTDOWN && reason === OUR_REASON;

/** True if the node has conditions of ours: they are cleared even if nobody updates the node any more. */
export const hasOurConditions = ({ lifecycle = [] }: Pick<LifecycleNode, "lifecycle">): boolean =>
  lifecycle.some((one) => isTrue(one) && isOurs(one));

/** If another writer has set one of these, no update begins; planned maintenance does not prevent it. */
const UNDER_WAY: ReadonlySet<string> = new Set(["DrainInProgress", "Drained", "MaintenanceInProgress", SHUTDOWN]);

/** The conditions by which somebody else drains or maintains the node; none if nobody does. */
export const foreignConditions = ({ lifecycle = [] }: Pick<LifecycleNode, "lifecycle">): LifecycleCondition[] =>
  lifecycle.filter((one) => UNDER_WAY.has(one.type) && isTrue(one) && !isOurs(one));

/** A sentence if somebody else drains or maintains the node; undefined if nobody does. */
export function maintenanceOf(node: Pick<LifecycleNode, "lifecycle">): string | undefined {
  const [found] = foreignConditions(node);
  if (!found) return undefined;
  const { type, reason, message } = found;
  return `the node has condition ${type} of somebody else (${reason || "without a reason"}${message && `: ${message.slice(0, 200)}`})`;
}

/**
 * The types that are True in a phase. The message is that of the attempt, so that a phase that goes on needs no write.
 */
function wantedTypes(phase: NodePhase, isCordoned: boolean): readonly LifecycleType[] {
  switch (phase) {
    case "Starting":
    case "Staging":
    case "Holding":
      return ["MaintenancePlanned"];
    case "Draining":
      return ["MaintenancePlanned", "DrainInProgress"];
    case "Rebooting":
      return ["Drained", "MaintenanceInProgress"];
    case "Returning":
      return ["MaintenanceInProgress"];
    case "Monitoring":
    case "Recovering":
      return isCordoned ? ["MaintenanceInProgress"] : [];
    default:
      return phase satisfies never;
  }
}

/** A node with a slot, and the policy that owns the slot. */
export interface ActiveUpdate extends Pick<ActiveNode, "phase" | "to"> {
  readonly policy: string;
  /** The last round of its drain found no pod: a forced reboot may leave some. */
  readonly isDrained: boolean;
}

/** A strategic merge patch of the Node's status, bound to the version that was read. */
export interface ConditionPatch {
  readonly node: string;
  readonly patch: {
    readonly metadata: { readonly resourceVersion: string };
    readonly status: { readonly conditions: readonly object[] };
  };
}

/**
 * The conditions to write, at most one patch a node; none for a node whose conditions are correct already. A condition
 * that is over is set to False, as the kubelet does with its own. `now` in milliseconds since the epoch.
 */
export function planConditions(
  nodes: readonly LifecycleNode[],
  active: ReadonlyMap<string, ActiveUpdate>,
  now: number,
): ConditionPatch[] {
  return nodes.flatMap((node) => {
    const { name, resourceVersion, lifecycle } = node;
    if (!lifecycle) return [];
    const changes = changesOf(node, lifecycle, active.get(name));
    const at = formatTimestamp(now);
    const conditions = changes.map(({ isTurned, ...one }) => ({
      ...one,
      lastHeartbeatTime: at,
      ...(isTurned && { lastTransitionTime: at }),
    }));
    return conditions.length > 0
      ? [{ node: name, patch: { metadata: { resourceVersion }, status: { conditions } } }]
      : [];
  });
}

function changesOf(
  { cordonedBy }: LifecycleNode,
  lifecycle: readonly LifecycleCondition[],
  update: ActiveUpdate | undefined,
): (LifecycleCondition & { readonly isTurned: boolean })[] {
  const wanted = update ? wantedTypes(update.phase, cordonedBy !== undefined) : [];
  const types = update?.isDrained === true ? wanted : wanted.filter((type) => type !== "Drained");
  const message = update ? `update to ${update.to}, by NodeUpdatePolicy ${update.policy}` : "no update is under way";
  return LIFECYCLE_TYPES.flatMap((type) => {
    const found = lifecycle.find((one) => one.type === type);
    const next = changeOf(found, { type, isWanted: types.includes(type), message });
    return next ? [{ ...next, isTurned: next.status !== found?.status }] : [];
  });
}

/** Undefined if the condition is correct already, is not wanted and not True, or is True by another writer. */
function changeOf(
  found: LifecycleCondition | undefined,
  { type, isWanted, message }: { readonly type: LifecycleType; readonly isWanted: boolean; readonly message: string },
): LifecycleCondition | undefined {
  const isActive = found !== undefined && isTrue(found);
  if (isActive && (!isOurs(found) || (isWanted && found.message === message))) return undefined;
  if (!isActive && !isWanted) return undefined;
  return { type, status: isWanted ? "True" : "False", reason: OUR_REASON, message };
}
