/** Checks of `zonewise doctor`: disruption budgets, and the pods that they are to protect. Pure. */
import { selectsLabels, type StoredBudget } from "../../../reconciler/budget/zpdb.ts";
import { nameOfGroup } from "../../../reconciler/group-status/status.ts";
import { LABELS } from "../../../reconciler/model/annotations.ts";
import { matchesLabels, matchesSelector, selectorText } from "../../../reconciler/model/label-selector.ts";
import { listSome } from "../../../infra/cut.ts";
import { groupKey, type Zone } from "../../../reconciler/model/zone.ts";
import { either, how, kubectl } from "../../../reconciler/model/remedy.ts";
import { findCovering, keepBudget } from "../../../reconciler/remedies/budget-cures.ts";
import { guardsAll } from "../unbudgeted.ts";
import { isGrouped } from "../../../reconciler/remedies/leader.ts";
import { type Check, edit, type DoctorFacts, label, row } from "./check.ts";

type Strings = Readonly<Record<string, string>>;

const selectsPods = (budget: StoredBudget, { namespace, podLabels }: Zone): boolean =>
  budget.ref.namespace === namespace && selectsLabels(budget, podLabels);
const selectsZone = (budget: StoredBudget, { namespace, labels }: Zone): boolean =>
  budget.ref.namespace === namespace && selectsLabels(budget, labels);

const objectOf = ({ budget }: { readonly budget: StoredBudget }): string => `zpdb/${budget.ref.name}`;
const objectOfZone = ({ zone }: { readonly zone: Zone }): string => `statefulset/${zone.name}`;
const editIt = ({ budget }: { readonly budget: StoredBudget }): string => edit(budget.ref, "zpdb");

interface Half {
  readonly budget: StoredBudget;
  readonly zone: Zone;
  /** The labels that the budget selects by and the StatefulSet, or its pods, lack. */
  readonly lacking: readonly (readonly [key: string, value: string])[];
  readonly lackingPods: Strings;
  readonly zones: readonly Zone[];
}

/**
 * A zone counts by the labels of its StatefulSet, a pod by its own labels: the budget must select both. `which` tells
 * whether it selects the StatefulSet and its pods.
 */
const findHalves =
  (which: (zone: boolean, pods: boolean) => boolean) =>
  ({ budgets, zones }: DoctorFacts): Half[] =>
    budgets.flatMap((budget) =>
      zones
        .filter((zone) => which(selectsZone(budget, zone), selectsPods(budget, zone)))
        .filter((zone) => selectsPods(budget, zone) || !isLeftToOthers(budget, zone, budgets))
        .map((zone) => {
          const wanted = Object.entries(budget.matchLabels ?? {});
          const lackingPods = Object.fromEntries(wanted.filter(([key, value]) => zone.podLabels[key] !== value));
          return {
            budget,
            zone,
            zones,
            lacking: wanted.filter(([key, value]) => zone.labels[key] !== value),
            lackingPods,
          };
        }),
    );

/** True if another budget selects its pods, or should select them: unlike this budget, it selects the StatefulSet. */
const isLeftToOthers = (budget: StoredBudget, zone: Zone, all: readonly StoredBudget[]): boolean =>
  all.some(
    (other) =>
      other !== budget && (selectsPods(other, zone) || (!selectsZone(budget, zone) && selectsZone(other, zone))),
  );

/** True if the budget selects another zone of the zone's group. */
const isOfGroup = ({ budget, zone, zones }: Half): boolean =>
  isGrouped(zone) && zones.some((one) => selectsZone(budget, one) && groupKey(one) === groupKey(zone));

const pairsOf = ({ lacking }: Half): string => lacking.map((pair) => pair.join("=")).join(" ");
const labelPods = ({ zone, lackingPods: labels }: Half): string =>
  kubectl(
    zone,
    `patch statefulset ${zone.name} --type=merge -p '${JSON.stringify({ spec: { template: { metadata: { labels } } } })}'`,
  );

/**
 * A StatefulSet that is alone in its group, or in none, has a mistyped label. If it has a group with other zones, its
 * pods have the labels of another group.
 */
function labelZone(half: Half): string {
  const { zone, zones, lacking } = half;
  const groupOf = ({ namespace, labels }: Zone): string => `${namespace}/${labels[LABELS.rolloutGroup]}`;
  const own = zones.filter((one) => groupOf(one) === groupOf(zone));
  return isGrouped(zone) && own.length > 1 && lacking.some(([key]) => key === LABELS.rolloutGroup)
    ? curePodLabels(half)
    : label(zone, pairsOf(half));
}

/** The pods of a zone have labels of another group, which its budget selects: they get their StatefulSet's labels. */
function curePodLabels({ zone, lacking, budget: { ref } }: Half): string {
  const { name, labels, selector } = zone;
  const why = `pods of ${name} have labels of another group, which budget ${ref.name} selects`;
  const own = labels[LABELS.rolloutGroup];
  // A pod that its StatefulSet no longer selects becomes an orphan. A Service may still select it by other labels.
  const text = selectorText(selector);
  const isBound = text.includes(LABELS.rolloutGroup);
  if (isBound || own === undefined || lacking.some(([key]) => key !== LABELS.rolloutGroup))
    return how(why, kubectl(zone, `edit zpdb ${ref.name}`));
  const patch = JSON.stringify({ spec: { template: { metadata: { labels: { [LABELS.rolloutGroup]: own } } } } });
  const pods = `label --overwrite pods -l '${text}' ${LABELS.rolloutGroup}=${own}`;
  const set = `patch statefulset ${name} --type=merge -p '${patch}'`;
  return how(
    `${why}; give them its own, also in the template, which replaces them in turn`,
    `${kubectl(zone, pods)} && ${kubectl(zone, set)}`,
  );
}

/** A pattern that finds no partition in the names of pods that the budget selects. */
const findUnmatched = ({ budgets, zones }: DoctorFacts) =>
  budgets.flatMap((budget) => {
    const { content } = budget;
    if ("problem" in content || !content.partitionOf) return [];
    const { partitionOf } = content;
    const pods = zones.filter((zone) => selectsPods(budget, zone)).map((one) => `${one.name}-${one.firstOrdinal}`);
    const unknown = pods.filter((pod) => partitionOf(pod) === undefined);
    return unknown.length === 0 ? [] : [{ budget, unknown, isAll: unknown.length === pods.length }];
  });

function findOverlaps({ budgets, zones }: DoctorFacts) {
  const found = zones.map((zone) => ({ zone, found: budgets.filter((budget) => selectsPods(budget, zone)) }));
  return found.filter((one) => one.found.length > 1);
}

/** A group of several zones that no zone-aware budget selects, if no PodDisruptionBudget guards all their pods. */
const findUncovered = ({ budgets, zones, groups, others }: DoctorFacts) =>
  [...groups.values()].flatMap((own) => {
    const live = own.filter(({ replicas }) => replicas > 0);
    const isSelected = own.some((zone) => budgets.some((one) => selectsPods(one, zone) || selectsZone(one, zone)));
    if (!others || own.length < 2 || live.length === 0 || isSelected || others.some((one) => guardsAll(one, live)))
      return [];
    const isGuarded = live.some((zone) => others.some((other) => guardsAll(other, [zone])));
    return [{ own, live, isGuarded, zones, budgets }];
  });

type Uncovered = ReturnType<typeof findUncovered>[number];

function describeUncovered({ own, live, isGuarded }: Uncovered): string {
  const names = listSome(own.map(({ name }) => name));
  const [what, evictions] = isGuarded
    ? ["the pods of all its zones", "evictions are allowed by budgets of single zones at most"]
    : ["its pods", "every eviction of them is allowed"];
  return `no disruption budget selects ${what} (${names}): ${evictions}${live.length > 1 ? ", in several zones at once" : ""}`;
}

/** `kubectl create` fails if the name is taken: a budget of that name may select others. */
function createBudget({ own, zones, budgets }: Uncovered): string {
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

/** A PodDisruptionBudget counts the pods of all zones together: it refuses evictions that the zone-aware budget allows. */
const findDoubled = ({ budgets, zones, others = [] }: DoctorFacts) =>
  others.flatMap(({ metadata, spec }) => {
    const zone = zones.find(
      (one) =>
        one.namespace === metadata?.namespace &&
        matchesSelector(spec?.selector, one.podLabels) &&
        budgets.some((budget) => selectsPods(budget, one)),
    );
    return zone ? [{ name: metadata?.name ?? "", zone }] : [];
  });

export const BUDGETS: readonly Check[] = [
  row({
    check: "budget-invalid",
    level: "error",
    when: ({ budgets }) =>
      budgets.flatMap((budget) => ("problem" in budget.content ? [{ budget, problem: budget.content.problem }] : [])),
    object: objectOf,
    message: ({ problem }) => problem,
    fix: editIt,
  }),
  row({
    check: "budget-selects",
    level: "error",
    when: ({ budgets, zones }) =>
      budgets.flatMap((budget) => {
        const found = zones.filter((zone) => selectsZone(budget, zone));
        return "problem" in budget.content || found.length >= 2 ? [] : [{ budget, only: found[0]?.name }];
      }),
    object: objectOf,
    message: ({ only }) =>
      `${only === undefined ? "it selects no StatefulSet by its labels" : `it selects ${only} alone`}: every eviction of its pods is refused`,
    fix: editIt,
  }),
  row({
    check: "budgets-overlap",
    level: "error",
    when: findOverlaps,
    object: objectOfZone,
    message: ({ found }) =>
      `several budgets select its pods: ${found.map(({ ref }) => ref.name).join(", ")}; every eviction of them is refused, and its group fails`,
    fix: ({ zone, found }) => {
      const names = found.map(({ ref }) => ref.name);
      // A budget that selects pods but not their StatefulSet belongs to another group.
      const kept = found.every((budget) => selectsZone(budget, zone)) ? findCovering(found)?.ref.name : undefined;
      return kept === undefined ? kubectl(zone, `edit zpdb ${names.at(-1)}`) : keepBudget(zone, kept, names);
    },
  }),
  row({
    check: "budget-selects-half",
    level: "error",
    when: findHalves((zone, pods) => pods && !zone),
    object: objectOfZone,
    message: ({ budget }) =>
      `budget ${budget.ref.name} selects its pods but not the StatefulSet: every eviction of them is refused, and a rollout waits`,
    fix: labelZone,
  }),
  row({
    check: "budget-selects-half",
    level: "error",
    when: findHalves((zone, pods) => zone && !pods),
    object: objectOfZone,
    message: ({ budget }) =>
      `budget ${budget.ref.name} selects the StatefulSet but not its pods: evictions of them ask no budget`,
    fix: (half) => how("this replaces its pods", labelPods(half)),
  }),
  row({
    check: "pattern-matches-no-pod",
    level: "error",
    when: findUnmatched,
    object: objectOf,
    message: ({ unknown, isAll }) =>
      `its podNamePartitionRegex finds no partition in the name of ${isAll ? "any pod that it selects" : "some pods that it selects"}, such as ${unknown[0]}: every eviction of these is refused`,
    fix: ({ budget: { ref } }) => {
      const patch = JSON.stringify({ spec: { podNamePartitionRegex: ".*-([0-9]+)", podNameRegexGroup: 1 } });
      return either(
        how(
          "if the partition is the number of the pod",
          kubectl(ref, `patch zpdb ${ref.name} --type=merge -p '${patch}'`),
        ),
        how("otherwise, write the pattern that fits", edit(ref, "zpdb")),
      );
    },
  }),
  row({
    check: "budget-selects-half",
    level: "warning",
    when: (facts) => findHalves((zone, pods) => !zone && !pods)(facts).filter(isOfGroup),
    object: objectOfZone,
    message: ({ budget, zone }) =>
      `budget ${budget.ref.name} selects other zones of group ${zone.group}, but neither this StatefulSet nor its pods`,
    fix: (half) => how("this replaces its pods", `${label(half.zone, pairsOf(half))} && ${labelPods(half)}`),
  }),
  row({
    check: "group-without-budget",
    level: "warning",
    when: findUncovered,
    object: ({ own }) => `group/${own[0]?.group}`,
    message: describeUncovered,
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
