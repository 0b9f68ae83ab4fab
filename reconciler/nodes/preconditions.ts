/** What must hold before the next state of a node is wanted (§17.3). */
import type { DrainAnswer } from "./drain-together.ts";
import { whyNotReturned } from "./health.ts";
import type { UpdateNode } from "./node.ts";
import type { ActiveNode } from "./policy-status.ts";
import type { NodeLook, PolicySnapshot } from "./snapshot.ts";

export interface PreconditionFacts {
  readonly snapshot: Pick<PolicySnapshot, "now" | "policy">;
  readonly entry: ActiveNode;
  readonly look: NodeLook | undefined;
  /** Why it cannot be drained beside the nodes that are being drained; asked once its own pods have been looked at. */
  readonly whyNotTogether: () => DrainAnswer;
}

type Precondition = (facts: PreconditionFacts, node: UpdateNode) => string | { readonly looks: readonly string[] } | undefined;

/** Each says why the next state must wait, or which nodes' pods must be looked at first. */
export const PRECONDITIONS: Readonly<Record<"drainable" | "ready" | "healthy", Precondition>> = {
  drainable({ snapshot: { policy }, look, whyNotTogether }, node) {
    if (policy.status.frozen) return `the policy is frozen: ${policy.status.frozen.message}`;
    if (!node.ready) return "the node is not Ready";
    if (node.terminating || node.removedBy !== undefined) return "the node is being removed";
    if (!look) return { looks: [node.name] };
    const why = look.rollout ?? look.obstacle ?? look.unknown;
    return why ?? messageOf(whyNotTogether());
  },
  ready: (_facts, node) => (node.ready ? undefined : "the node is not Ready"),
  healthy({ snapshot: { now, policy }, entry, look }, node) {
    const why = whyNotReturned({ now, node, entry, minReadySeconds: policy.health.minReadySeconds });
    return why ?? (look ? look.missing : { looks: [node.name] });
  },
};

const messageOf = (answer: DrainAnswer) => (answer && "message" in answer ? answer.message : answer);
