/** The Events of a pass: on nodes about their updates, on the policy about its freeze and the reason. Pure. */
import type { ObjectRef } from "../model/decision.ts";
import type { UpdateNode } from "./node.ts";
import type { NodePlan, ShadowWrite } from "./plan-pass.ts";
import type { ActiveStep } from "./plan-active.ts";
import type { Policy } from "./policy.ts";
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

const policyRef = ({ name, uid }: Policy): ObjectRef => ({
  kind: "NodeUpdatePolicy",
  namespace: "",
  name,
  uid,
});
const nodeRef = ({ name, uid }: UpdateNode): ObjectRef => ({ kind: "Node", namespace: "", name, uid });

export function draftUncordon(node: UpdateNode): Draft {
  const ref = nodeRef(node);
  return normal(ref, "Uncordoned", "its update has ended, and our cordon was removed");
}

/** The Events of a plan, for the writes that took effect. Why a node waits is in the policy's status alone. */
export function draftPass(policy: Policy, { status, steps }: NodePlan, written: readonly ShadowWrite[]): Draft[] {
  return [
    ...draftInvalid(policy),
    ...draftFreeze(policy, status.frozen),
    ...steps.flatMap(draftStep),
    ...written.flatMap(draftStart),
  ];
}

function draftInvalid(policy: Policy): Draft[] {
  const ref = policyRef(policy);
  return policy.problem === undefined ? [] : [warning(ref, "PolicyInvalid", `no update starts: ${policy.problem}`)];
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

function draftStart({ node, spec }: ShadowWrite): Draft[] {
  const { current_version: from = "?" } = node.shadow?.status ?? {};
  if (spec.state !== "StagedAndPerformedUpdate" || node.shadow?.spec.state === spec.state) return [];
  const ref = nodeRef(node);
  const text = `the update from ${from} to ${spec.version ?? from} starts`;
  return [{ ...normal(ref, "UpdateStarted", text), cause: `${spec.state_transition_timestamp}` }];
}
