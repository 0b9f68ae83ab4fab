/** Explains what holds groups and nodes back: gates, disruption budgets, policies of node updates. Pure. */
import type { Guard } from "../../reconciler/budget/guard.ts";
import type { StoredBudget } from "../../reconciler/budget/scope.ts";
import type { Gate } from "../../reconciler/gates/gate.ts";
import { isInvalid, type InvalidPolicy, type Policy } from "../../reconciler/nodes/policy.ts";
import { allow, deny, type Blocker, denyUnguarded, type Explanation } from "./answer.ts";
import { SKIP_RULES } from "./node-rules.ts";

/** `answers` are those of its group. */
export function explainGate({ ref, group, mode }: Gate, answers: readonly Explanation[]): Explanation[] {
  const held = answersNaming(ref, answers);
  if (held.length > 0) return held;
  const why = answers.length === 0 ? `there is no rollout group ${group}` : `group ${group} does not wait for it`;
  return [allow("let zones begin", mode === "Observe" ? `it only observes; ${why}` : why)];
}

/** `answers` are those of all groups of its namespace. */
export function explainBudget(budget: StoredBudget, guard: Guard, answers: readonly Explanation[]): Explanation[] {
  const { ref, content } = budget;
  const held = answersNaming(ref, answers);
  if ("problem" in content)
    return [
      deny({
        question: "protect its pods",
        reason: "BudgetInvalid",
        rule: "the disruption budget is valid",
        message: `${content.problem}: every eviction of its pods is refused`,
        objects: [ref],
        remedy: `kubectl -n ${ref.namespace} edit zpdb ${ref.name}`,
      }),
    ];
  const own = allow("protect its pods", "a webhook asks it about every eviction");
  return [...denyUnguarded([own], guard, ref), ...held];
}

const answersNaming = ({ kind, name }: Blocker, answers: readonly Explanation[]): Explanation[] =>
  answers.filter(({ objects }) => objects.some((one) => one.kind === kind && one.name === name));

const START = "start node updates";

export function explainPolicy(policy: Policy | InvalidPolicy): Explanation {
  const frozen = isInvalid(policy) ? undefined : policy.status.frozen;
  const context = { node: "", policy: policy.name, freeze: frozen?.id ?? "", namespace: "" };
  const refuse = (reason: "PolicyInvalid" | "Frozen", message: string, since?: string): Explanation =>
    deny({
      question: START,
      reason,
      rule: SKIP_RULES[reason].rule,
      message,
      objects: [],
      since,
      remedy: SKIP_RULES[reason].remedy(context),
    });
  if (isInvalid(policy)) return refuse("PolicyInvalid", policy.unreadable);
  if (policy.problem !== undefined) return refuse("PolicyInvalid", policy.problem);
  return frozen ? refuse("Frozen", frozen.message, frozen.at) : allow(START, policy.status.message);
}
