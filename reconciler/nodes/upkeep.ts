/**
 * Repairs beside the updates: each managed node has a shadow, a node that is not managed any more has
 * none, a node without a policy goes back to Idle, no node stays cordoned by us, and autoscalers are kept away
 * from active nodes. Cordons are undone here also if the agent is gone (§17.6).
 */
import { formatTimestamp } from "../../infra/timestamp.ts";
import { belongsTo, PROTECTED_BY, type Shadow, type UpdateNode } from "./node.ts";
import { type NodePatch, unmarkNode } from "./node-marks.ts";
import type { ShadowSpec } from "./shadow.ts";
import { isInReboot } from "./state-machine.ts";

export interface UpkeepSnapshot {
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** All nodes that are managed, have a shadow, or are active. */
  readonly nodes: readonly UpdateNode[];
  /** Active nodes by name; true if autoscalers are to be kept away. */
  readonly active: ReadonlyMap<string, boolean>;
  /** Nodes that left their slots before they were done. */
  readonly released: ReadonlySet<string>;
  /** True if there is a policy. */
  readonly isGoverned: boolean;
}

export type Upkeep =
  | { readonly action: "createShadow"; readonly node: UpdateNode }
  | { readonly action: "deleteShadow"; readonly node: UpdateNode; readonly shadow: Shadow }
  /** No policy decides about the update any more. */
  | { readonly action: "resetShadow"; readonly node: UpdateNode; readonly shadow: Shadow; readonly spec: ShadowSpec }
  /** A merge patch of the Node. */
  | { readonly action: "uncordon" | "protect" | "unprotect"; readonly node: UpdateNode; readonly patch: NodePatch };

/** Annotations that keep autoscalers from removing a node. */
const KEEP_AWAY = ["cluster-autoscaler.kubernetes.io/scale-down-disabled", "karpenter.sh/do-not-disrupt"];

export function planUpkeep(snapshot: UpkeepSnapshot): Upkeep[] {
  return snapshot.nodes.flatMap((node) => [
    ...keepShadow(node, snapshot),
    ...resetShadow(node, snapshot),
    ...uncordon(node, snapshot),
    ...keepAway(node, snapshot),
  ]);
}

function keepShadow(node: UpdateNode, { active }: UpkeepSnapshot): Upkeep[] {
  const { shadow, managed, terminating } = node;
  if (!shadow) return managed && !terminating ? [{ action: "createShadow", node }] : [];
  // A node that carries marks of ours, or is rebooting, is repaired first: without its shadow nobody would find it.
  const isMarked = node.cordonedBy !== undefined || node.protectedBy !== undefined;
  const isFinished = !active.has(node.name) && !isMarked && !isInReboot(node);
  return managed || shadow.terminating || !isFinished ? [] : [{ action: "deleteShadow", node, shadow }];
}

function resetShadow(node: UpdateNode, { isGoverned, now }: UpkeepSnapshot): Upkeep[] {
  const { shadow, managed } = node;
  if (!shadow || !managed || isGoverned || shadow.terminating || shadow.problem !== undefined) return [];
  if (shadow.spec.state === "Idle") return [];
  const spec: ShadowSpec = {
    state: "Idle",
    state_transition_timestamp: formatTimestamp(now),
    version: shadow.spec.version ?? null,
  };
  return [{ action: "resetShadow", node, shadow, spec }];
}

function uncordon(node: UpdateNode, snapshot: UpkeepSnapshot): Upkeep[] {
  if (node.cordonedBy === undefined || !node.ready || !mayUncordon(node, snapshot)) return [];
  const { resourceVersion, annotations } = node;
  const patch = unmarkNode({ metadata: { resourceVersion, annotations } });
  return patch ? [{ action: "uncordon", node, patch }] : [];
}

/**
 * True if the shadow is gone or replaced, or if Idle is wanted; for a node that is about to reboot, only once a person
 * has released it.
 */
function mayUncordon(node: UpdateNode, { active, released }: UpkeepSnapshot): boolean {
  const { shadow, name } = node;
  if (!shadow || shadow.uid !== node.cordonedBy || !belongsTo(shadow, node)) return true;
  if (isInReboot(node)) return released.has(name) && !active.has(name);
  return shadow.spec.state === "Idle" || (!node.managed && !active.has(name));
}

function keepAway(node: UpdateNode, { active }: UpkeepSnapshot): Upkeep[] {
  const wanted = active.get(node.name) === true;
  if (wanted === (node.protectedBy !== undefined)) return [];
  if (!wanted) {
    const ours = (node.protectedBy ?? "").split(",").filter((key) => KEEP_AWAY.includes(key));
    return [{ action: "unprotect", node, patch: marks(node, [...ours, PROTECTED_BY], () => null) }];
  }
  const missing = KEEP_AWAY.filter((key) => node.annotations[key] === undefined);
  if (missing.length === 0) return [];
  return [
    {
      action: "protect",
      node,
      patch: marks(node, [...missing, PROTECTED_BY], (key) => (key === PROTECTED_BY ? missing.join(",") : "true")),
    },
  ];
}

function marks(
  { resourceVersion }: UpdateNode,
  keys: readonly string[],
  value: (key: string) => string | null,
): NodePatch {
  return { metadata: { resourceVersion, annotations: Object.fromEntries(keys.map((key) => [key, value(key)])) } };
}
