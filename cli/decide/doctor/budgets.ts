/** Checks of `zonewise doctor`: disruption budgets, and the pods that they are to protect. Pure. */
import { listSome } from "../../../infra/cut.ts";
import { selectsLabels, type StoredBudget } from "../../../reconciler/budget/zpdb.ts";
import { nameOfGroup } from "../../../reconciler/group-status/status.ts";
import { LABELS } from "../../../reconciler/model/annotations.ts";
import { matchesLabels, matchesSelector, selectorText } from "../../../reconciler/model/label-selector.ts";
import { how, kubectl } from "../../../reconciler/model/remedy.ts";
import { groupKey, type Zone } from "../../../reconciler/model/zone.ts";
import { findCovering, keepBudget } from "../../../reconciler/remedies/budget-cures.ts";
import { guardsAll } from "../unbudgeted.ts";
import { type Check, type DoctorFacts, edit, label, ofZone, row } from "./facts.ts";

export const BUDGETS: readonly Check[] = [
  row({
    check: "budget-invalid",
    level: "error",
    when: ({ budgets }) =>
      budgets.flatMap((budget) => ("problem" in budget.content ? [{ budget, problem: budget.content.problem }] : [])),
    object: ofBudget,
    message: ({ problem }) => problem,
    fix: editBudget,
  }),
  row({
    check: "budget-selects",
    level: "error",
    when: findNarrow,
    object: ofBudget,
    message: ({ only }) =>
      `${only === undefined ? "it selects no StatefulSet by its labels" : `it selects ${only} alone`}: every eviction of its pods is refused`,
    fix: editBudget,
  }),
  row({
    check: "budgets-overlap",
    level: "error",
    when: findOverlaps,
    object: ofZone,
    message: ({ names }) =>
      `several budgets select its pods: ${names.join(", ")}; every eviction of them is refused, and its group fails`,
    fix: cureOverlap,
  }),
  row({
    check: "budget-selects-half",
    level: "error",
    when: findHalves,
    object: ofZone,
    message: ({ budget, isOfPods }) =>
      isOfPods
        ? `budget ${budget.ref.name} selects its pods but not the StatefulSet: every eviction of them is refused, and a rollout waits`
        : `budget ${budget.ref.name} selects the StatefulSet but not its pods: evictions of them ask no budget`,
    fix: cureHalf,
  }),
  row({
    check: "budget-selects-half",
    level: "warning",
    when: findLeftOut,
    object: ofZone,
    message: ({ budget, zone }) =>
      `budget ${budget.ref.name} selects other zones of group ${zone.group}, but neither this StatefulSet nor its pods`,
    fix: cureLeftOut,
  }),
  row({
    check: "pattern-matches-no-pod",
    level: "error",
    when: findUnmatched,
    object: ofBudget,
    message: ({ pod }) =>
      `its podNamePartitionRegex finds no partition in the name ${pod}: every eviction of such pods is refused`,
    fix: editBudget,
  }),
  row({
    check: "group-without-budget",
    level: "warning",
    when: findUncovered,
    object: ({ own }) => `group/${own[0]?.group}`,
    message: ({ names }) =>
      `no disruption budget selects the pods of all its zones (${names}): evictions may take pods of several zones at once`,
    fix: createBudget,
  }),
  row({
    check: "pdb-beside-zpdb",
    level: "warning",
    when: findDoubled,
    object: ({ name }) => `pdb/${name}`,
    message: ({ zone }) =>
      `it selects pods of ${zone.name} as a zone-aware budget does: an eviction needs both to allow it`,
    fix: ({ zone, name }) => kubectl(zone, `delete pdb ${name}`),
  }),
];

function ofBudget({ budget }: { readonly budget: StoredBudget }): string {
  return `zpdb/${budget.ref.name}`;
}
function editBudget({ budget }: { readonly budget: StoredBudget }): string {
  return edit(budget.ref, "zpdb");
}

// A zone counts by the labels of its StatefulSet, a pod by its own labels: a budget must select both.
const selectsPods = (budget: StoredBudget, { namespace, podLabels }: Zone): boolean =>
  budget.ref.namespace === namespace && selectsLabels(budget, podLabels);
const selectsSet = (budget: StoredBudget, { namespace, labels }: Zone): boolean =>
  budget.ref.namespace === namespace && selectsLabels(budget, labels);

/** A StatefulSet that a budget selects without its pods, or not at all, or its pods without it. */
interface Mismatch {
  readonly budget: StoredBudget;
  readonly zone: Zone;
  /** The zones of its group, itself among them. */
  readonly own: readonly Zone[];
}

/** Budgets that select a StatefulSet and not its pods, unless another budget selects these; or the other way round. */
function findHalves({ budgets, groups, zones }: DoctorFacts) {
  return budgets.flatMap((budget) =>
    zones
      .filter((zone) => selectsPods(budget, zone) !== selectsSet(budget, zone))
      .filter((zone) => selectsPods(budget, zone) || !budgets.some((other) => selectsPods(other, zone)))
      .map((zone) => ({
        budget,
        zone,
        own: groups.get(groupKey(zone)) ?? [],
        isOfPods: selectsPods(budget, zone),
      })),
  );
}

/** Zones of which no budget selects anything, beside others of their group that a budget selects. */
function findLeftOut({ budgets, groups }: DoctorFacts): Mismatch[] {
  return [...groups.values()].flatMap((own) => {
    const budget = budgets.find((one) => own.some((zone) => selectsSet(one, zone)));
    const isLeftOut = (zone: Zone): boolean => !budgets.some((one) => selectsSet(one, zone) || selectsPods(one, zone));
    return budget ? own.filter(isLeftOut).map((zone) => ({ budget, zone, own })) : [];
  });
}

/** The labels that the budget selects by and these labels lack. */
const lackingIn = ({ budget }: Mismatch, labels: Zone["labels"]): (readonly [key: string, value: string])[] =>
  Object.entries(budget.matchLabels ?? {}).filter(([key, value]) => labels[key] !== value);

const labelSet = (found: Mismatch): string =>
  label(
    found.zone,
    lackingIn(found, found.zone.labels)
      .map((pair) => pair.join("="))
      .join(" "),
  );

const patchPodLabels = (zone: Zone, labels: object): string =>
  kubectl(
    zone,
    `patch statefulset ${zone.name} --type=merge -p '${JSON.stringify({ spec: { template: { metadata: { labels } } } })}'`,
  );

const labelPods = (found: Mismatch): string =>
  patchPodLabels(found.zone, Object.fromEntries(lackingIn(found, found.zone.podLabels)));

/**
 * A StatefulSet that is alone in its group, or in none, has a mistyped label. If it has a group with other zones, its
 * pods have the labels of another group.
 */
function cureHalf({ isOfPods, ...found }: Mismatch & { readonly isOfPods: boolean }): string {
  if (!isOfPods) return how("this replaces its pods", labelPods(found));
  const isOfOther = lackingIn(found, found.zone.labels).some(([key]) => key === LABELS.rolloutGroup);
  return isOfOther && found.own.length > 1 ? curePodLabels(found) : labelSet(found);
}

function cureLeftOut(found: Mismatch): string {
  return how("this replaces its pods", `${labelSet(found)} && ${labelPods(found)}`);
}

/** The pods of a zone have labels of another group, which its budget selects: they get their StatefulSet's labels. */
function curePodLabels(found: Mismatch): string {
  const { zone, budget } = found;
  const why = `pods of ${zone.name} have labels of another group, which budget ${budget.ref.name} selects`;
  const own = zone.labels[LABELS.rolloutGroup];
  // A pod that its StatefulSet no longer selects becomes an orphan. A Service may still select it by other labels.
  const text = selectorText(zone.selector);
  const isBound = text.includes(LABELS.rolloutGroup);
  if (isBound || own === undefined || lackingIn(found, zone.labels).some(([key]) => key !== LABELS.rolloutGroup))
    return how(why, editBudget(found));
  const pods = kubectl(zone, `label --overwrite pods -l '${text}' ${LABELS.rolloutGroup}=${own}`);
  return how(
    `${why}; give them its own, also in the template, which replaces them in turn`,
    `${pods} && ${patchPodLabels(zone, { [LABELS.rolloutGroup]: own })}`,
  );
}

/** Budgets that select fewer than two StatefulSets: no zone is protected from another. */
function findNarrow({ budgets, zones }: DoctorFacts) {
  return budgets.flatMap((budget) => {
    const [only, ...more] = zones.filter((zone) => selectsSet(budget, zone));
    return "problem" in budget.content || more.length > 0 ? [] : [{ budget, only: only?.name }];
  });
}

/** StatefulSets whose pods several budgets select. */
function findOverlaps({ budgets, zones }: DoctorFacts) {
  return zones
    .map((zone) => ({ zone, found: budgets.filter((budget) => selectsPods(budget, zone)) }))
    .filter(({ found }) => found.length > 1)
    .map((one) => ({ ...one, names: one.found.map(({ ref }) => ref.name) }));
}

function cureOverlap({ zone, found, names }: ReturnType<typeof findOverlaps>[number]): string {
  // A budget that selects pods but not their StatefulSet belongs to another group.
  const kept = found.every((budget) => selectsSet(budget, zone)) ? findCovering(found)?.ref.name : undefined;
  return kept === undefined ? kubectl(zone, `edit zpdb ${names.at(-1)}`) : keepBudget(zone, kept, names);
}

/** Budgets whose pattern finds no partition in the names of pods that they select. */
function findUnmatched({ budgets, zones }: DoctorFacts) {
  return budgets.flatMap((budget) => {
    const { content } = budget;
    if ("problem" in content || !content.partitionOf) return [];
    const { partitionOf } = content;
    const pods = zones.filter((zone) => selectsPods(budget, zone)).map((one) => `${one.name}-${one.firstOrdinal}`);
    const pod = pods.find((one) => partitionOf(one) === undefined);
    return pod === undefined ? [] : [{ budget, pod }];
  });
}

/** Groups with pods in several zones that no zone-aware budget selects and no PodDisruptionBudget guards as a whole. */
function findUncovered({ budgets, zones, groups, others }: DoctorFacts) {
  return [...groups.values()].flatMap((own) => {
    const live = own.filter(({ replicas }) => replicas > 0);
    const isSelected = own.some((zone) => budgets.some((one) => selectsPods(one, zone) || selectsSet(one, zone)));
    const isGuarded = isSelected || !others || others.some((one) => guardsAll(one, live));
    return live.length < 2 || isGuarded ? [] : [{ own, names: listSome(own.map(({ name }) => name)), zones, budgets }];
  });
}

/** `kubectl create` fails if the name is taken: a budget of that name may select others. */
function createBudget({ own, zones, budgets }: ReturnType<typeof findUncovered>[number]): string {
  const { namespace = "", group = "" } = own[0] ?? {};
  const name = nameOfGroup(group);
  if (budgets.some(({ ref }) => ref.namespace === namespace && ref.name === name))
    return edit({ namespace, name }, "zpdb");
  const matchLabels = { [LABELS.rolloutGroup]: group };
  const others = zones.filter((zone) => zone.namespace === namespace && !own.includes(zone));
  // Pods of Deployments may have any labels and are not read here: so only the group's own label is safe.
  if (
    !own.every(({ podLabels }) => matchesLabels(matchLabels, podLabels)) ||
    others.some(({ podLabels }) => matchesLabels(matchLabels, podLabels))
  )
    return `give the pods of these StatefulSets, in their templates, the label ${LABELS.rolloutGroup}=${group}, and no other pod (it replaces the pods in turn); then write a ZoneAwarePodDisruptionBudget that selects it: docs/reference/webhooks.md, Disruption budgets`;
  const budget = {
    apiVersion: "rollout-operator.grafana.com/v1",
    kind: "ZoneAwarePodDisruptionBudget",
    metadata: { name },
    spec: { maxUnavailable: 1, selector: { matchLabels } },
  };
  return `echo '${JSON.stringify(budget)}' | ${kubectl({ namespace }, "create -f -")}`;
}

/** PodDisruptionBudgets that select pods of a zone-aware budget: they count the pods of all zones together. */
function findDoubled({ budgets, zones, others = [] }: DoctorFacts) {
  return others.flatMap(({ metadata, spec }) => {
    const zone = zones.find(
      (one) =>
        one.namespace === metadata?.namespace &&
        matchesSelector(spec?.selector, one.podLabels) &&
        budgets.some((budget) => selectsPods(budget, one)),
    );
    return zone ? [{ name: metadata?.name ?? "", zone }] : [];
  });
}
