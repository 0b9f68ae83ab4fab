/** The Events of a pass: on nodes what happens to them, on the policy that it is frozen, and why. Pure. */
import type { ObjectRef } from "../model/decision.ts";
import type { UpdateNode } from "../nodes/node.ts";
import type { Plan, ShadowWrite } from "../nodes/plan.ts";
import type { ActiveStep } from "../nodes/plan-active.ts";
import type { Policy } from "../nodes/policy.ts";
import { SHADOW_KIND } from "../nodes/shadow.ts";
import type { Draft } from "../report/events.ts";

/** The Events of a plan of which these writes took effect. */
export function draftPass(policy: Policy, { status, steps, skips }: Plan, written: readonly ShadowWrite[]): Draft[] {
  const regarding: ObjectRef = { kind: "NodeUpdatePolicy", namespace: "", name: policy.name, uid: policy.uid };
  const { frozen } = status;
  const freeze: Draft[] =
    frozen && !policy.status.frozen
      ? [
          {
            regarding,
            type: "Warning",
            reason: "Frozen",
            message: `no update starts any more: ${frozen.message}; clear it by spec.unfreeze: ${frozen.id}`,
          },
        ]
      : [];
  const thaw: Draft[] =
    policy.status.frozen && !frozen
      ? [{ regarding, type: "Normal", reason: "Unfrozen", message: `cleared ${policy.status.frozen.id}: updates go on` }]
      : [];
  const contested = skips.filter(({ reason }) => reason === "SeveralPolicies");
  const overlap: Draft[] = contested.map(({ node, message }) => ({
    regarding,
    type: "Warning",
    reason: "SeveralPolicies",
    message: `${node} is skipped: ${message}`,
  }));
  return [...freeze, ...thaw, ...overlap, ...steps.flatMap(draftStep), ...written.flatMap(draftWrite)];
}

const nodeRef = ({ name, uid }: UpdateNode): ObjectRef => ({ kind: "Node", namespace: "", name, uid });

function draftStep({ entry, node, step }: ActiveStep): Draft[] {
  if (!node) return [];
  const draft = { regarding: nodeRef(node), type: "Normal" as const };
  if (step.step === "done") return [{ ...draft, reason: "NodeUpdated", message: `updated from ${entry.from} to ${entry.to}` }];
  if ("reason" in step) return [{ ...draft, type: "Warning", reason: step.reason, message: step.message, cause: entry.startedAt }];
  const isHeld = step.step === "wait" && entry.phase === "Holding" && entry.waitsFor !== undefined;
  return isHeld ? [{ ...draft, reason: "UpdateHeld", message: entry.waitsFor ?? "" }] : [];
}

function draftWrite({ node, spec }: ShadowWrite): Draft[] {
  const { shadow } = node;
  if (!shadow || spec.state === shadow.spec.state) return [];
  const { current_version: from = "?" } = shadow.status ?? {};
  const message = `${spec.state} is wanted, from ${from} to ${spec.version ?? from}`;
  const ref: ObjectRef = { kind: SHADOW_KIND, namespace: shadow.namespace, name: shadow.name, uid: shadow.uid };
  const cause = `${spec.state} ${spec.state_transition_timestamp}`;
  const draft = { type: "Normal" as const, reason: "StateWanted", message, cause };
  return [
    { ...draft, regarding: ref },
    ...(spec.state === "StagedAndPerformedUpdate" ? [{ ...draft, regarding: nodeRef(node), reason: "UpdateStarted" }] : []),
  ];
}
