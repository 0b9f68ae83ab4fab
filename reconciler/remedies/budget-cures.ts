/** Cures for budgets that do not fit their StatefulSets, or that several zones or pods share. Pure. */
import type { StoredBudget } from "../budget/zpdb.ts";
import { LABELS } from "../model/annotations.ts";
import { matchesLabels, selectorText } from "../model/label-selector.ts";
import { either, how, kubectl, zonewise } from "../model/remedy.ts";
import type { ZoneWithPods } from "../model/zone.ts";
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

interface Misfit {
  readonly name: string;
  /** Undefined for a StatefulSet in no group. */
  readonly zone: ZoneWithPods | undefined;
  readonly budget: string;
  /** The labels that the budget selects by and the StatefulSet does not have. */
  readonly lacking: readonly (readonly [key: string, value: string])[];
}

/** The StatefulSets whose pods a named budget selects, but not the StatefulSets themselves. */
function findMisfits(context: RuleContext): Misfit[] {
  const names = new Set(namesOf(context));
  const [, stranger = ""] = /unable to find StatefulSet (\S+) by name/.exec(context.message) ?? [];
  return (context.budgets ?? []).flatMap(({ ref, matchLabels = {} }): Misfit[] => {
    if (!names.has(ref.name)) return [];
    const pairs = Object.entries(matchLabels);
    const among = context.zones.filter(
      ({ labels, pods }) =>
        !matchesLabels(matchLabels, labels) && pods.some((pod) => matchesLabels(matchLabels, pod.labels)),
    );
    const found = among.map((zone) => {
      const lacking = pairs.filter(([key, value]) => zone.labels[key] !== value);
      return { name: zone.name, zone, budget: ref.name, lacking };
    });
    const isUnknown = stranger !== "" && context.zones.every(({ name }) => name !== stranger);
    return [...found, ...(isUnknown ? [{ name: stranger, zone: undefined, budget: ref.name, lacking: pairs }] : [])];
  });
}

/**
 * Undefined if all budgets select StatefulSets and their pods alike. A StatefulSet that is alone in its group has a
 * mistyped label. If it has other zones, its own label is right, and its pods have the labels of another group.
 */
export function cureLabels(context: RuleContext): string | undefined {
  const cures = findMisfits(context).map((misfit) => {
    const { name, zone, lacking, budget } = misfit;
    const hasGroup = context.zones.length > 1 && lacking.some(([key]) => key === LABELS.rolloutGroup);
    if (zone && hasGroup) return curePodLabels(zone, misfit);
    const pairs = lacking.map((pair) => pair.join("=")).join(" ");
    return how(
      `give ${name} the labels that budget ${budget} selects`,
      kubectl(context, `label --overwrite statefulset ${name} ${pairs}`),
    );
  });
  return cures.length > 0 ? cures.join("\nand ") : undefined;
}

/** The pods of a zone have labels of another group, which its budget selects: they get their StatefulSet's labels. */
export function curePodLabels(
  zone: Pick<ZoneWithPods, "namespace" | "name" | "labels" | "selector">,
  { lacking, budget }: Pick<Misfit, "lacking" | "budget">,
): string {
  const { name, labels, selector } = zone;
  const why = `pods of ${name} have labels of another group, which budget ${budget} selects`;
  const own = labels[LABELS.rolloutGroup];
  // A pod that its StatefulSet no longer selects becomes an orphan. A Service may still select it by other labels.
  const text = selectorText(selector);
  const isBound = text.includes(LABELS.rolloutGroup);
  if (isBound || own === undefined || lacking.some(([key]) => key !== LABELS.rolloutGroup))
    return how(why, kubectl(zone, `edit zpdb ${budget}`));
  const patch = JSON.stringify({ spec: { template: { metadata: { labels: { [LABELS.rolloutGroup]: own } } } } });
  const pods = `label --overwrite pods -l '${text}' ${LABELS.rolloutGroup}=${own}`;
  const set = `patch statefulset ${name} --type=merge -p '${patch}'`;
  return how(
    `${why}; give them its own, also in the template, which replaces them in turn`,
    `${kubectl(zone, pods)} && ${kubectl(zone, set)}`,
  );
}
