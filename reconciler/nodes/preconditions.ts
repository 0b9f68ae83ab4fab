/** The preconditions of the next wanted state of a node (§17.3). */
import type { DrainAnswer } from "./drain-together.ts";
import { whyNotReturned } from "./health.ts";
import { maintenanceOf } from "./lifecycle-conditions.ts";
import type { UpdateNode } from "./node.ts";
import type { ActiveNode } from "./policy-status.ts";
import type { NodeReading, PolicySnapshot } from "./snapshot.ts";
import type { Precondition } from "./state-machine.ts";

export interface PreconditionFacts {
  readonly snapshot: Pick<PolicySnapshot, "now" | "policy">;
  readonly entry: ActiveNode;
  readonly reading: NodeReading | undefined;
  /** Why it cannot be drained beside the nodes that are being drained; asked once its own pods have been read. */
  readonly whyNotTogether: () => DrainAnswer;
}

type Judge = (
  facts: PreconditionFacts,
  node: UpdateNode,
) => string | { readonly toRead: readonly string[] } | undefined;

/** Each says why the next state must wait, or which nodes' pods must be read first. */
export const PRECONDITIONS: Readonly<Record<Precondition, Judge>> = {
  drainable({ snapshot: { policy }, reading, whyNotTogether }, node) {
    if (policy.status.frozen) return `the policy is frozen: ${policy.status.frozen.message}`;
    if (!node.ready) return "the node is not Ready";
    if (node.terminating || node.removedBy !== undefined) return "the node is being removed";
    const maintenance = maintenanceOf(node);
    if (maintenance !== undefined) return maintenance;
    if (!reading) return { toRead: [node.name] };
    const why = reading.rollout ?? reading.obstacle ?? reading.unknown;
    return why ?? messageOf(whyNotTogether());
  },
  ready: (_facts, node) => (node.ready ? undefined : "the node is not Ready"),
  healthy({ snapshot: { now, policy }, entry, reading }, node) {
    const why = whyNotReturned({ now, node, entry, minReadySeconds: policy.health.minReadySeconds });
    return why ?? (reading ? reading.missing : { toRead: [node.name] });
  },
};

const messageOf = (answer: DrainAnswer) => (answer && "message" in answer ? answer.message : answer);
