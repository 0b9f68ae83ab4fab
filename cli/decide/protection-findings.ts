/** Findings of `zonewise doctor` about disruption budgets, and about the webhooks that ask them. Pure. */
import { isInjected } from "../../infra/certs/configurations.ts";
import type { PodDisruptionBudget, StatefulSet, WebhookConfiguration } from "../../infra/kubernetes/resources.ts";
import { EVICTION_PATHS, type Guard } from "../../reconciler/budget/guard.ts";
import type { DeletionGuard } from "../../reconciler/budget/deletion-guard.ts";
import { matchesLabels } from "../../reconciler/budget/selector.ts";
import { findCovering, type StoredBudget } from "../../reconciler/budget/scope.ts";
import { ANNOTATIONS, LABELS } from "../../reconciler/model/annotations.ts";
import { listSome } from "../../reconciler/model/list-some.ts";
import { groupKey, readZone, type Zone } from "../../reconciler/model/zone.ts";
import { nameOfGroup } from "../../reconciler/group-status/name.ts";
import { matchesSelector } from "../../reconciler/model/label-selector.ts";
import { groupBy } from "../../reconciler/model/order.ts";
import { curePodLabels, keepBudget, kubectl } from "../../reconciler/remedies/cures.ts";
import { type Finding, isGrouped, label } from "./findings.ts";

/** Findings about the webhook that asks a budget about evictions: its state, or that it could not be tried. */
export function examineGuard(budget: string, guard: Guard & { readonly notTried?: string }): Finding[] {
  const { state, message, remedy: fix, notTried } = guard;
  const object = `zpdb/${budget}`;
  if (state === "open" || state === "down") return [{ level: "error", check: "not-guarded", object, message, fix }];
  if (state === "guarded") return [];
  return [
    notTried === undefined
      ? { level: "warning", check: "not-checked", object, message, fix }
      : { level: "warning", check: "not-tried", object, message, fix: "run it as one who may create pods/eviction" },
  ];
}

/**
 * Findings about the guard of pod deletions in a namespace with budgets. Guards are opt-in, so that a missing one is no
 * error.
 */
export function examineDeletions(namespace: string, { by, message, remedy: fix }: DeletionGuard): Finding[] {
  const object = `namespace/${namespace}`;
  if (by === "unknown") return [{ level: "warning", check: "not-checked", object, message, fix }];
  if (by === "down") return [{ level: "error", check: "deletions-refused", object, message, fix }];
  const check = by === "none" ? "deletions-not-guarded" : "deletions-guarded";
  return [{ level: "note", check, object, message, fix }];
}

/**
 * StatefulSets of groups whose template has the annotation that permits deletions: no guard refuses the deletion of any
 * of their pods, also of later ones.
 */
export function examineTemplates(objects: readonly StatefulSet[]): Finding[] {
  return objects.flatMap((object): Finding[] => {
    const zone = readZone(object);
    const annotations = object.spec?.template.metadata?.annotations ?? {};
    if (!isGrouped(zone) || annotations[ANNOTATIONS.deleteByHand] !== "true") return [];
    const path = `/spec/template/metadata/annotations/${ANNOTATIONS.deleteByHand.replace("/", "~1")}`;
    const patch = JSON.stringify([{ op: "remove", path }]);
    return [
      {
        level: "warning",
        check: "delete-by-hand-in-template",
        object: `statefulset/${zone.name}`,
        message: `its template carries ${ANNOTATIONS.deleteByHand}: no guard refuses a deletion of any of its pods`,
        fix: `take it out, which rolls the zone out: ${kubectl(zone, `patch statefulset ${zone.name} --type=json -p '${patch}'`)}`,
      },
    ];
  });
}

/** Findings of all budgets of a namespace, with its StatefulSets and its PodDisruptionBudgets, if they could be read. */
export function examineBudgets(
  budgets: readonly StoredBudget[],
  zones: readonly Zone[],
  others: readonly PodDisruptionBudget[] | undefined,
): Finding[] {
  return [
    ...budgets.flatMap((budget) => [
      ...examineBudget(budget, zones),
      ...examineSelected(budget, zones, budgets),
      ...examinePattern(budget, zones),
    ]),
    ...examineOverlaps(budgets, zones),
    ...(others ? [...examineUnbudgeted(budgets, zones, others), ...examineOthers(budgets, zones, others)] : []),
  ];
}

const selects = ({ matchLabels, ref }: StoredBudget, { namespace, podLabels }: Zone): boolean =>
  matchLabels !== undefined && ref.namespace === namespace && matchesLabels(matchLabels, podLabels);

function examineBudget(budget: StoredBudget, zones: readonly Zone[]): Finding[] {
  const { ref, content, matchLabels } = budget;
  const object = `zpdb/${ref.name}`;
  const fix = `kubectl -n ${ref.namespace} edit zpdb ${ref.name}`;
  if ("problem" in content) return [{ level: "error", check: "budget-invalid", object, message: content.problem, fix }];
  const found = zones.filter(
    (zone) => zone.namespace === ref.namespace && matchLabels && matchesLabels(matchLabels, zone.labels),
  );
  if (found.length >= 2) return [];
  const what = found.length === 0 ? "it selects no StatefulSet by its labels" : `it selects ${found[0]?.name} alone`;
  return [
    { level: "error", check: "budget-selects", object, message: `${what}: every eviction of its pods is refused`, fix },
  ];
}

const selectsZone = ({ matchLabels, ref }: StoredBudget, { namespace, labels }: Zone): boolean =>
  matchLabels !== undefined && ref.namespace === namespace && matchesLabels(matchLabels, labels);

/** True if another budget selects its pods, or should select them: unlike this budget, it selects the StatefulSet. */
const isLeftToOthers = (budget: StoredBudget, zone: Zone, all: readonly StoredBudget[]): boolean =>
  all.some(
    (other) => other !== budget && (selects(other, zone) || (!selectsZone(budget, zone) && selectsZone(other, zone))),
  );

/** A zone counts by the labels of its StatefulSet, a pod by its own labels: the budget must select both. */
function examineSelected(budget: StoredBudget, zones: readonly Zone[], all: readonly StoredBudget[]): Finding[] {
  const { matchLabels = {}, ref } = budget;
  const others = new Set(zones.filter((zone) => selectsZone(budget, zone)).map(groupKey));
  return zones
    .filter((zone) => selects(budget, zone) || !isLeftToOthers(budget, zone, all))
    .flatMap((zone): Finding[] => {
      const [own, pods] = [selectsZone(budget, zone), selects(budget, zone)];
      // Reported only if the budget selects one of the two, or neither but another zone of the group.
      if (own === pods && (own || !others.has(groupKey(zone)) || zone.labels[LABELS.rolloutGroup] === undefined))
        return [];
      const { namespace, name } = zone;
      const level = own || pods ? "error" : "warning";
      const find = (message: string, fix: string): Finding[] => [
        { level, check: "budget-selects-half", object: `statefulset/${name}`, message, fix },
      ];
      const labelSet = label(
        zone,
        findLacking(matchLabels, zone.labels)
          .map((pair) => pair.join("="))
          .join(" "),
      );
      const labels = Object.fromEntries(
        Object.entries(matchLabels).filter(([key, value]) => zone.podLabels[key] !== value),
      );
      const labelPods = `kubectl -n ${namespace} patch statefulset ${name} --type=merge -p '${JSON.stringify({ spec: { template: { metadata: { labels } } } })}'`;
      if (own)
        return find(
          `budget ${ref.name} selects it and not its pods: no budget is asked about their evictions`,
          `this replaces its pods: ${labelPods}`,
        );
      if (pods)
        return find(
          `budget ${ref.name} selects its pods and not it: every eviction of them is refused, and a rollout waits`,
          cureLabels(zone, budget, zones),
        );
      return find(
        `budget ${ref.name} selects other zones of group ${zone.group}, and neither it nor its pods`,
        `this replaces its pods: ${labelSet} && ${labelPods}`,
      );
    });
}

const findLacking = (wanted: Strings, found: Strings): [key: string, value: string][] =>
  Object.entries(wanted).filter(([key, value]) => found[key] !== value);
/**
 * A StatefulSet that is alone in its group, or in none, has a mistyped label. If it has a group with other zones, its
 * pods have the labels of another group.
 */
function cureLabels(zone: Zone, { matchLabels = {}, ref }: StoredBudget, zones: readonly Zone[]): string {
  const lacking = findLacking(matchLabels, zone.labels);
  const groupOf = ({ namespace, labels }: Zone): string => `${namespace}/${labels[LABELS.rolloutGroup]}`;
  const own = zones.filter((one) => groupOf(one) === groupOf(zone));
  return isGrouped(zone) && own.length > 1 && lacking.some(([key]) => key === LABELS.rolloutGroup)
    ? curePodLabels(zone, { lacking, budget: ref.name })
    : label(zone, lacking.map((pair) => pair.join("=")).join(" "));
}

type Strings = Readonly<Record<string, string>>;

/** A pattern that finds no partition in the names of pods that the budget selects. */
function examinePattern(budget: StoredBudget, zones: readonly Zone[]): Finding[] {
  const { ref, content } = budget;
  if ("problem" in content || !content.partitionOf) return [];
  const { partitionOf } = content;
  const pods = zones.filter((zone) => selects(budget, zone)).map(({ name, firstOrdinal }) => `${name}-${firstOrdinal}`);
  const unknown = pods.filter((pod) => partitionOf(pod) === undefined);
  if (unknown.length === 0) return [];
  const patch = { spec: { podNamePartitionRegex: ".*-([0-9]+)", podNameRegexGroup: 1 } };
  const byNumber = `kubectl -n ${ref.namespace} patch zpdb ${ref.name} --type=merge -p '${JSON.stringify(patch)}'`;
  const which = unknown.length === pods.length ? "any pod that it selects" : "some pods that it selects";
  return [
    {
      level: "error",
      check: "pattern-matches-no-pod",
      object: `zpdb/${ref.name}`,
      message: `its podNamePartitionRegex finds no partition in the name of ${which}, such as ${unknown[0]}: every eviction of these is refused`,
      fix: `if the partition is the number of the pod: ${byNumber}; otherwise kubectl -n ${ref.namespace} edit zpdb ${ref.name}`,
    },
  ];
}

function examineOverlaps(budgets: readonly StoredBudget[], zones: readonly Zone[]): Finding[] {
  return zones.flatMap((zone): Finding[] => {
    const found = budgets.filter((budget) => selects(budget, zone));
    if (found.length < 2) return [];
    const names = found.map(({ ref }) => ref.name);
    const message = `several budgets select its pods: ${names.join(", ")}; every eviction of them is refused, and its group fails`;
    // A budget that selects pods but not their StatefulSet belongs to another group.
    const kept = found.every((budget) => selectsZone(budget, zone)) ? findCovering(found)?.ref.name : undefined;
    const fix = kept === undefined ? kubectl(zone, `edit zpdb ${names.at(-1)}`) : keepBudget(zone, kept, names);
    return [{ level: "error", check: "budgets-overlap", object: `statefulset/${zone.name}`, message, fix }];
  });
}

/** A group of several zones that no zone-aware budget selects, if no PodDisruptionBudget guards all their pods. */
function examineUnbudgeted(
  budgets: readonly StoredBudget[],
  zones: readonly Zone[],
  others: readonly PodDisruptionBudget[],
): Finding[] {
  return [...groupBy(zones.filter(isGrouped), groupKey).values()].flatMap((own): Finding[] => {
    const [first] = own;
    const live = own.filter(({ replicas }) => replicas > 0);
    const isSelected = own.some((zone) => budgets.some((one) => selects(one, zone) || selectsZone(one, zone)));
    if (!first || own.length < 2 || live.length === 0 || isSelected || others.some((other) => guardsAll(other, live)))
      return [];
    const names = listSome(own.map(({ name }) => name));
    const guarded = live.filter((zone) => others.some((other) => guardsAll(other, [zone])));
    const [what, evictions] =
      guarded.length > 0
        ? ["the pods of all its zones", "evictions are allowed by budgets of single zones at most"]
        : ["its pods", "every eviction of them is allowed"];
    return [
      {
        level: "warning",
        check: "group-without-budget",
        object: `group/${first.group}`,
        message: `no disruption budget selects ${what} (${names}): ${evictions}${live.length > 1 ? ", in several zones at once" : ""}`,
        fix: createBudget(own, zones, budgets),
      },
    ];
  });
}

const guardsAll = ({ metadata, spec }: PodDisruptionBudget, own: readonly Zone[]): boolean =>
  own.every(
    ({ namespace, podLabels }) =>
      metadata?.namespace === namespace && spec?.selector !== undefined && matchesSelector(spec.selector, podLabels),
  );

/** The fix uses `kubectl create`, which fails if the name is taken: a budget of that name may select others. */
function createBudget(own: readonly Zone[], zones: readonly Zone[], budgets: readonly StoredBudget[]): string {
  const { namespace = "", group = "" } = own[0] ?? {};
  const name = nameOfGroup(group);
  if (budgets.some(({ ref }) => ref.namespace === namespace && ref.name === name))
    return kubectl({ namespace }, `edit zpdb ${name}`);
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

/**
 * A PodDisruptionBudget counts the pods of all zones together: it refuses evictions that the zone-aware budget allows.
 */
function examineOthers(
  budgets: readonly StoredBudget[],
  zones: readonly Zone[],
  others: readonly PodDisruptionBudget[],
): Finding[] {
  return others.flatMap(({ metadata, spec }): Finding[] => {
    const matchLabels = spec?.selector?.matchLabels;
    if (!matchLabels) return [];
    const both = zones.find((zone) => {
      if (zone.namespace !== metadata?.namespace || !matchesLabels(matchLabels, zone.podLabels)) return false;
      return budgets.some((budget) => selects(budget, zone));
    });
    if (!both) return [];
    const message = `it selects pods of ${both.name} beside a zone-aware budget: an eviction needs both`;
    const fix = `kubectl -n ${both.namespace} delete pdb ${metadata?.name}`;
    return [{ level: "warning", check: "pdb-beside-zpdb", object: `pdb/${metadata?.name}`, message, fix }];
  });
}

/** True for our configurations of any namespace: their names contain the namespace as well. */
const isOurs = ({ metadata }: WebhookConfiguration): boolean =>
  metadata?.labels?.["grafana.com/namespace"] !== undefined || /zonewise/.test(metadata?.name ?? "");

/** Findings of all webhook configurations of the cluster. */
export function examineWebhooks(configurations: readonly WebhookConfiguration[]): Finding[] {
  return [...configurations.filter(isOurs).flatMap(examineCa), ...configurations.flatMap(examineFailurePolicy)];
}

/** An eviction webhook that fails open: it allows evictions that it does not answer. */
function examineFailurePolicy({ metadata, webhooks = [] }: WebhookConfiguration): Finding[] {
  const name = metadata?.name ?? "";
  return webhooks.flatMap(({ clientConfig, failurePolicy }, i): Finding[] => {
    const path = clientConfig.service?.path ?? URL.parse(clientConfig.url ?? "")?.pathname ?? "";
    if (failurePolicy !== "Ignore" || !EVICTION_PATHS.includes(path)) return [];
    const patch = JSON.stringify([{ op: "replace", path: `/webhooks/${i}/failurePolicy`, value: "Fail" }]);
    const resource = path.includes("mutate") ? "mutatingwebhookconfiguration" : "validatingwebhookconfiguration";
    return [
      {
        level: "warning",
        check: "webhook-fails-open",
        object: `webhookconfiguration/${name}`,
        message:
          "it fails open: an eviction that the functions do not answer in time is executed, whatever the budget says",
        fix: `once the functions run: kubectl patch ${resource} ${name} --type=json -p '${patch}'`,
      },
    ];
  });
}

function examineCa(configuration: WebhookConfiguration): Finding[] {
  const { metadata, webhooks = [] } = configuration;
  const without = webhooks.filter(({ clientConfig }) => !clientConfig.caBundle && clientConfig.service);
  return without.map(({ name }): Finding => ({
    level: "error",
    check: "webhook-without-ca",
    object: `webhookconfiguration/${metadata?.name}`,
    message: `${name} has no caBundle: the API server cannot call it`,
    fix: isInjected(configuration)
      ? "let the reconciler run: it injects the CA by the roles of infra/manifests/certificates, and without them nobody does; see docs/certificates.md"
      : "give it the label grafana.com/inject-rollout-operator-ca=true, and the reconciler injects the CA, unless an annotation leaves it to another injector, such as cert-manager; see docs/certificates.md",
  }));
}
