/** Cures for budgets that do not fit their StatefulSets, or that several zones or pods share. Pure. */
import type { StoredBudget } from "../budget/zpdb.ts";
import { matchesLabels } from "../model/label-selector.ts";
import { either, how, kubectl, zonewise } from "../model/remedy.ts";
import { growZone, named, type RuleContext } from "./cures.ts";

const namesOf = named("ZoneAwarePodDisruptionBudget");

/**
 * The budget that, by its labels alone, selects all that the others select: without the others no pod loses its
 * budget.
 */
export const findCovering = <B extends Pick<StoredBudget, "matchLabels">>(budgets: readonly B[]): B | undefined =>
  budgets.find(({ matchLabels: kept }) =>
    budgets.every(({ matchLabels }) => kept && matchLabels && matchesLabels(kept, matchLabels)),
  );

/** The command that deletes all budgets except the one that selects everything that they all select. */
export const keepBudget = (at: Pick<RuleContext, "namespace">, kept: string, names: readonly string[]): string =>
  how(`keep one, such as ${kept}`, kubectl(at, `delete zpdb ${names.filter((name) => name !== kept).join(" ")}`));

export function keepOne(context: RuleContext): string {
  const names = namesOf(context);
  const found = (context.budgets ?? []).filter(({ ref }) => names.includes(ref.name));
  const kept = found.length === names.length ? findCovering(found)?.ref.name : undefined;
  if (kept === undefined)
    return how("let one select the pod", kubectl(context, `edit zpdb ${names.at(-1) ?? ""}`.trim()));
  return keepBudget(context, kept, names);
}

/** In a group of one zone there is no other that could be given labels (§1.14.1). */
export function cureTooFew(context: RuleContext): string {
  const { zones } = context;
  const name = namesOf(context)[0] ?? "";
  const selector = kubectl(context, `get zpdb ${name} -o jsonpath={.spec.selector}`);
  if (zones.length > 1)
    return either(
      how("give the other zones the labels that the budget selects", selector),
      how("see which zones lack them", zonewise(context, "doctor")),
    );
  return either(
    how(
      "with one zone such a budget protects nothing, and a PodDisruptionBudget does; delete it",
      kubectl(context, `delete zpdb ${name}`),
    ),
    how("if there are other zones, give them its labels", selector),
  );
}

/** In partition mode, a zone without pods counts as one missing pod for each eviction (§1.14.3). */
export function cureEmpty({ zones, message }: RuleContext): string {
  const empty = message.includes(" partition ") ? zones.filter(({ replicas }) => replicas === 0) : [];
  const most = Math.max(...zones.map(({ replicas }) => replicas));
  if (empty.length === 0 || most === 0) return "";
  const grow = empty.map((one) => growZone(one, most)).join("\n");
  return how("give the zone of 0 replicas pods: a budget by partition counts it as missing", grow);
}

/** Which labels are wrong, all budgets and StatefulSets of the namespace show: doctor reads them. */
export const seeDoctor = (context: RuleContext): string =>
  how(
    "give the StatefulSet, or its pods, the labels that its budget selects, as doctor proposes",
    zonewise(context, "doctor"),
  );
