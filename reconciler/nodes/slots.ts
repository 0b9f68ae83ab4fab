/**
 * Counts the nodes that may still start (NR29, NR30). Nodes that a person has released from a freeze count until they
 * are back in service (§17.5).
 */
import { parseTimestamp } from "../../infra/timestamp.ts";
import type { UpdateNode } from "./node.ts";
import { allowedActive } from "./policy.ts";
import type { PolicySnapshot } from "./snapshot.ts";
import { isAtRest, isInReboot } from "./state-machine.ts";

interface Slots {
  /** 0 or more. */
  readonly free: number;
  /** A sentence for each node that counts although it is not active: until when it counts. */
  readonly counted: readonly string[];
}

/**
 * By the active nodes of `policy.status`. Nodes that are not Ready may never become Ready: together they take all
 * slots but one at most.
 */
export function countSlots(snapshot: PolicySnapshot): Slots {
  const { policy, nodes, contested } = snapshot;
  const own = nodes.filter(({ name }) => !contested.has(name)).length;
  const isActive = new Set(policy.status.active.map(({ node }) => node));
  const at = new Map(
    policy.status.deferred.filter(({ reason }) => reason === RELEASED).map((one) => [one.node, one.at]),
  );
  const released = nodes.filter(({ name }) => at.has(name) && !isActive.has(name));
  const returning = released.filter((node) => node.ready && isReturning(node, snapshot, at.get(node.name)));
  const out = released.filter((node) => !node.ready && isOut(node));
  const taken = policy.status.active.length + returning.length;
  const remaining = Math.max(0, allowedActive(policy.maxConcurrent, own) - taken);
  const free = Math.max(remaining - out.length, taken === 0 ? Math.min(1, remaining) : 0);
  return { free, counted: [...returning, ...out].map(untilInService) };
}

const untilInService = ({ name }: UpdateNode): string => `${name} counts until it is back in service`;

/** In a policy's list of nodes that wait: a person has cleared the freeze that they caused. */
export const RELEASED = "ReleasedByHand";

const hasRest = ({ shadow }: UpdateNode): boolean => shadow !== undefined && isAtRest(shadow);

const isOut = (node: UpdateNode): boolean => node.cordonedBy !== undefined || isInReboot(node) || !hasRest(node);

/** A node that serves counts no longer than its agent may take to report it. */
function isReturning(node: UpdateNode, { now, policy }: PolicySnapshot, releasedAt = ""): boolean {
  if (node.cordonedBy !== undefined || isInReboot(node)) return true;
  return !hasRest(node) && now < (parseTimestamp(releasedAt) ?? 0) + policy.deadlines.recoverSeconds * 1000;
}
