/** The preconditions of the next wanted state of a node (§17.3). */
import { whyNoPlace } from "./drainable.ts";
import { whyNotReturned } from "./health.ts";
import type { UpdateNode } from "./node.ts";
import type { ActiveNode } from "./policy-status.ts";
import type { GoingNode, NodeReading, PolicySnapshot } from "./snapshot.ts";
import type { Precondition } from "./state-machine.ts";

export interface PreconditionFacts {
  readonly snapshot: Pick<PolicySnapshot, "now" | "policy">;
  readonly entry: ActiveNode;
  readonly reading: NodeReading | undefined;
  /** Nodes that are being drained or reboot. */
  readonly going: readonly GoingNode[];
}

type Judge = (
  facts: PreconditionFacts,
  node: UpdateNode,
) => string | { readonly toRead: readonly string[] } | undefined;

/** Each says why the next state must wait, or which nodes' pods must be read first. */
export const PRECONDITIONS: Readonly<Record<Precondition, Judge>> = {
  drainable({ snapshot: { policy }, reading, going }, node) {
    if (policy.status.frozen) return `the policy is frozen: ${policy.status.frozen.message}`;
    if (!node.ready) return "the node is not Ready";
    if (node.terminating || node.removedBy !== undefined) return "the node is being removed";
    if (!reading) return { toRead: [node.name] };
    return reading.rollout ?? reading.obstacle ?? whyNoPlace(node, reading, { going, policy })?.message;
  },
  ready: (_facts, node) => (node.ready ? undefined : "the node is not Ready"),
  healthy({ snapshot: { now, policy }, entry, reading }, node) {
    const why = whyNotReturned({ now, node, entry, minReadySeconds: policy.health.minReadySeconds });
    return why ?? (reading ? reading.missing : { toRead: [node.name] });
  },
};
