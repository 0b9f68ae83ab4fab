/** The Events of a pass: on nodes about their updates, on the policy about its freeze and the reason. Pure. */
import type { ObjectRef } from "../model/decision.ts";
import type { UpdateNode } from "./node.ts";
import type { NodePlan, ShadowWrite } from "./plan-pass.ts";
import type { ActiveStep } from "./plan-active.ts";
import type { InvalidPolicy, Policy } from "./policy.ts";
import { SHADOW_KIND } from "./shadow.ts";
import type { Skip } from "./snapshot.ts";
import type { Draft } from "../report/events.ts";

const normal = (regarding: ObjectRef, reason: string, message: string): Draft => ({
  regarding,
  type: "Normal",
  reason,
  message,
});
const warning = (regarding: ObjectRef, reason: string, message: string): Draft => ({
  regarding,
  type: "Warning",
  reason,
  message,
});

const policyRef = ({ name, uid }: Policy | InvalidPolicy): ObjectRef => ({
  kind: "NodeUpdatePolicy",
  namespace: "",
  name,
  uid,
});
const nodeRef = ({ name, uid }: UpdateNode): ObjectRef => ({ kind: "Node", namespace: "", name, uid });

export function draftInvalid(policy: Policy | InvalidPolicy, problem: string): Draft {
  const ref = policyRef(policy);
  return warning(ref, "PolicyInvalid", `no update starts: ${problem}`);
}

export function draftUncordon(node: UpdateNode): Draft {
  const ref = nodeRef(node);
  return normal(ref, "Uncordoned", "its update has ended, and our cordon was removed");
}

/** The Events of a plan, for the writes that took effect. */
export function draftPass(
  policy: Policy,
  { status, steps, skips }: NodePlan,
  { written, nodes }: { readonly written: readonly ShadowWrite[]; readonly nodes: readonly UpdateNode[] },
): Draft[] {
  const ref = policyRef(policy);
  const contested = skips.filter(({ reason }) => reason === "SeveralPolicies");
  return [
    ...(policy.problem === undefined ? [] : [draftInvalid(policy, policy.problem)]),
    ...draftFreeze(policy, status.frozen),
    ...contested.map(({ node, message }) => warning(ref, "NodeContested", `${node} is skipped: ${message}`)),
    ...draftHeld(skips, nodes),
    ...steps.flatMap(draftStep),
    ...written.flatMap(draftWrite),
  ];
}

/**
 * The Events of nodes that are held by their pods: each reason once, although its message names other nodes the next
 * time; a warning if a person must act.
 */
function draftHeld(skips: readonly Skip[], nodes: readonly UpdateNode[]): Draft[] {
  const byName = new Map(nodes.map((node) => [node.name, node]));
  return skips.flatMap(({ node: name, reason, message }): Draft[] => {
    const node = byName.get(name);
    const ref = node && nodeRef(node);
    const text = `${reason}: ${message}`;
    return ref && reason === "NoPlaceForPods" ? [{ ...warning(ref, "UpdateNotStarted", text), cause: reason }] : [];
  });
}

function draftFreeze(policy: Policy, frozen: NodePlan["status"]["frozen"]): Draft[] {
  const ref = policyRef(policy);
  const before = policy.status.frozen;
  if (frozen && !before)
    return [
      warning(ref, "Frozen", `no further update starts: ${frozen.message}; spec.unfreeze: ${frozen.id} clears it`),
    ];
  return before && !frozen ? [normal(ref, "Unfrozen", `${before.id} was cleared: updates continue`)] : [];
}

function draftStep({ entry, node, step }: ActiveStep): Draft[] {
  if (!node) return [];
  const ref = nodeRef(node);
  if (step.step === "done") return [normal(ref, "NodeUpdated", `updated from ${entry.from} to ${entry.to}`)];
  if ("reason" in step)
    return [
      {
        ...warning(ref, "UpdateAbandoned", `${step.reason}: ${step.message}`),
        cause: `${step.reason} ${entry.startedAt}`,
      },
    ];
  const isHeld = step.step === "wait" && entry.phase === "Holding" && entry.waitsFor !== undefined;
  return isHeld ? [normal(ref, "UpdateHeld", entry.waitsFor ?? "")] : [];
}

function draftWrite({ node, spec }: ShadowWrite): Draft[] {
  const { shadow } = node;
  if (!shadow || spec.state === shadow.spec.state) return [];
  const { current_version: from = "?" } = shadow.status ?? {};
  const cause = `${spec.state} ${spec.state_transition_timestamp}`;
  const ref: ObjectRef = { kind: SHADOW_KIND, namespace: shadow.namespace, name: shadow.name, uid: shadow.uid };
  const wanted = {
    ...normal(ref, "StateWanted", `${spec.state} is wanted, from ${from} to ${spec.version ?? from}`),
    cause,
  };
  if (spec.state !== "StagedAndPerformedUpdate") return [wanted];
  const started = nodeRef(node);
  return [
    wanted,
    { ...normal(started, "UpdateStarted", `the update from ${from} to ${spec.version ?? from} starts`), cause },
  ];
}
