/** Cures for pods that are not ready: the best first, with real names; none touches a healthy pod. Pure. */
import { isReady } from "../model/health.ts";
import type { Pod } from "../model/pod.ts";
import { isZoneRecorded, type Zone, type ZoneWithPods } from "../model/zone.ts";
import type { StoredBudget } from "../budget/scope.ts";
import { matchesLabels } from "../budget/zpdb.ts";
import { LABELS } from "../model/annotations.ts";
import { listSome } from "../../infra/cut.ts";

/** The subject of a remedy: the objects that block, and the group as it is. */
export interface RuleContext {
  readonly namespace: string;
  readonly message: string;
  readonly objects: readonly { readonly kind: string; readonly name: string }[];
  /** "" for a pod that is in no group. */
  readonly group: string;
  readonly zones: readonly ZoneWithPods[];
  /** All StatefulSets of the namespace, where they were read. */
  readonly all?: readonly Zone[] | undefined;
  /** The budgets of the namespace, where they were read. */
  readonly budgets?: readonly Pick<StoredBudget, "ref" | "matchLabels">[];
}

export const kubectl = ({ namespace }: Pick<RuleContext, "namespace">, command: string): string =>
  `kubectl -n ${namespace} ${command}`;
/** The command that deletes all budgets except the one that selects everything that they all select. */
export const keepBudget = (at: Pick<RuleContext, "namespace">, kept: string, names: readonly string[]): string =>
  `keep one, such as ${kept}: ${kubectl(at, `delete zpdb ${names.filter((name) => name !== kept).join(" ")}`)}`;
export const zonewise = ({ namespace }: Pick<RuleContext, "namespace">, command: string): string =>
  `zonewise -n ${namespace} ${command}`;

/**
 * The command that gives a zone replicas. A zone that takes its replicas from elsewhere does not keep those of a
 * command.
 */
export function growZone(zone: Zone, replicas: number): string {
  const { leader, mirror } = zone.scaling;
  if (leader !== undefined) return kubectl(zone, `scale statefulset ${leader} --replicas=${replicas}`);
  if (mirror) return `give ${mirror.kind} ${mirror.name} more than 0 replicas: ${kubectl(zone, "get hpa")}`;
  return kubectl(zone, `scale statefulset ${zone.name} --replicas=${replicas}`);
}

export const named =
  (kind: string) =>
  ({ objects }: RuleContext): string[] =>
    objects.flatMap((one) => (one.kind === kind ? [one.name] : []));

interface Ill {
  readonly pod: Pod;
  readonly zone: ZoneWithPods;
}

/** The pods that block, if any are named; otherwise all of the named zones that are not ready. */
function findIll(context: RuleContext): readonly Ill[] {
  const names = new Set(named("Pod")(context));
  const zones = new Set(named("StatefulSet")(context));
  const ill = context.zones.flatMap((zone) => zone.pods.flatMap((pod) => (isReady(pod) ? [] : [{ pod, zone }])));
  return ill.filter(({ pod, zone }) => (names.size > 0 ? names.has(pod.name) : zones.has(zone.name)));
}

/** A pod that is missing is not well either. */
const isUnwell = ({ pods, replicas }: ZoneWithPods): boolean =>
  pods.length < replicas || pods.some((pod) => !isReady(pod));

const hasReadyPod = ({ pods, status }: ZoneWithPods): boolean =>
  pods.some((pod) => isReady(pod) && pod.revision === status.updateRevision);

/**
 * True if another pod is ready with the template, in the zone or in one that has finished with the same images: then
 * the pod is at fault. A finished zone alone proves nothing: a new StatefulSet is finished from its creation.
 */
const isTemplateProven = ({ zone }: Ill, zones: readonly ZoneWithPods[]): boolean =>
  [zone, ...(isZoneRecorded(zone) ? zones.filter((other) => isAlike(other, zone)) : [])].some(hasReadyPod);

const isAlike = (other: ZoneWithPods, { images }: ZoneWithPods): boolean =>
  isZoneRecorded(other) && other.images.join() === images.join();

type Cause = "pod" | "template" | "outdated" | "room" | "starting" | "startingAnew" | "terminating" | "unknown";

function causeOf(ill: Ill, zones: readonly ZoneWithPods[]): Cause {
  const { pod, zone } = ill;
  const isOutdated = pod.revision !== zone.status.updateRevision;
  const { state, fault } = pod.health;
  if (state === "gone") return "terminating";
  if (state === "working") return "unknown";
  if (state === "lost") {
    if (fault === "Unschedulable") return "room";
    if (isOutdated) return "outdated";
    return isTemplateProven(ill, zones) ? "pod" : "template";
  }
  if (isOutdated) return "unknown";
  return isTemplateProven(ill, zones) ? "starting" : "startingAnew";
}

type Cure = (context: RuleContext, ill: readonly Ill[]) => string;

const podNames = (ill: readonly Ill[]): string => ill.map(({ pod }) => pod.name).join(" ");
const zoneNames = (ill: readonly Ill[]): string => [...new Set(ill.map(({ zone }) => zone.name))].join(" ");

function cureTemplate(context: RuleContext, ill: readonly Ill[]): string {
  const all = ill.every(({ zone }) => isZoneRecorded(zone))
    ? zoneNames(ill)
    : context.zones.map(({ name }) => name).join(" ");
  const fix = `fix the template: ${kubectl(context, `edit statefulset ${all}`)}`;
  // Undo leaves zones that have finished as they are.
  if (ill.every(({ zone }) => isZoneRecorded(zone))) return fix;
  return `take back the zones under way: ${zonewise(context, `undo ${context.group}`)}; or ${fix}`;
}

/** In the order in which they are proposed. */
const CURES: Readonly<Record<Exclude<Cause, "unknown">, Cure>> = {
  pod: (context, ill) =>
    `delete the broken pod, its controller creates it again: ${kubectl(context, `delete pod ${podNames(ill)}`)}`,
  template: cureTemplate,
  outdated: (_context, ill) => `wait: ${podNames(ill)} of an earlier template serves nothing, and is replaced next`,
  room: (context, ill) =>
    `no node takes ${podNames(ill)}, see why: ${kubectl(context, `describe pod ${podNames(ill)}`)}; make room, or bring back the volume that is missing`,
  starting: (context, ill) =>
    `wait for ${podNames(ill)}; if it does not become ready, delete it, its controller creates it again: ${kubectl(context, `delete pod ${podNames(ill)}`)}`,
  startingAnew: (context, ill) =>
    `wait for ${podNames(ill)}; if it does not become ready, ${cureTemplate(context, ill)}`,
  terminating: (context, ill) =>
    `wait until ${podNames(ill)} is gone; if it lasts, see which finalizer or lost node holds it: ${kubectl(context, `get pod ${podNames(ill)} -o yaml`)}`,
};

/** Pods that their controller does not make: a full quota, or an admission that refuses them. */
function cureMissing(context: RuleContext): string[] {
  const names = new Set(named("StatefulSet")(context));
  const short = context.zones.find(({ name, pods, replicas }) => names.has(name) && pods.length < replicas);
  if (!short) return [];
  const { name, pods, replicas } = short;
  return [
    `${name} has ${pods.length} of ${replicas} pods, see why: ${kubectl(context, `describe statefulset ${name}`)}; free the quota if it is full: ${kubectl(context, "describe resourcequota")}`,
  ];
}

/** `otherwise` is the remedy if nothing shows the fault. */
export function curePods(context: RuleContext, otherwise = "wait for the pods"): string {
  const ill = findIll(context);
  const cures = (Object.keys(CURES) as (keyof typeof CURES)[]).flatMap((cause) => {
    const own = ill.filter((one) => causeOf(one, context.zones) === cause);
    // If another zone is degraded too, a pod that may come back may hold the last copy of its data.
    const isRisky = cause === "starting" && context.zones.filter(isUnwell).length > 1;
    return own.length > 0 && !isRisky ? [CURES[cause](context, own)] : [];
  });
  const all = [...cures, ...cureMissing(context)];
  const pods = ill.length > 0 ? ill.map(({ pod }) => pod.name) : named("Pod")(context);
  const look = kubectl(context, pods.length > 0 ? `describe pod ${pods.join(" ")}` : "get pods");
  return [...(all.length > 0 ? all : [otherwise]), `look: ${look}`].join("; or ");
}

/** `db-zone-a-0, db-zone-b-0` */
export const listNames = (names: readonly string[]): string => listSome(names);

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
  const names = new Set(named("ZoneAwarePodDisruptionBudget")(context));
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
    return `give ${name} the labels that budget ${budget} selects: ${kubectl(context, `label --overwrite statefulset ${name} ${pairs}`)}`;
  });
  return cures.length > 0 ? cures.join("; and ") : undefined;
}

/** The pods of a zone have labels of another group, which its budget selects: they get those of their StatefulSet. */
export function curePodLabels(
  zone: Pick<ZoneWithPods, "namespace" | "name" | "labels" | "selector">,
  { lacking, budget }: Pick<Misfit, "lacking" | "budget">,
): string {
  const { name, labels, selector } = zone;
  const why = `pods of ${name} have labels of another group, which budget ${budget} selects`;
  const own = labels[LABELS.rolloutGroup];
  // A pod that its StatefulSet no longer selects becomes an orphan. A Service may still select it by other labels.
  const isBound = selector.split(",").some((term) => term.includes(LABELS.rolloutGroup));
  if (isBound || own === undefined || lacking.some(([key]) => key !== LABELS.rolloutGroup))
    return `${why}: ${kubectl(zone, `edit zpdb ${budget}`)}`;
  const patch = JSON.stringify({ spec: { template: { metadata: { labels: { [LABELS.rolloutGroup]: own } } } } });
  const pods = `label --overwrite pods -l '${selector}' ${LABELS.rolloutGroup}=${own}`;
  const set = `patch statefulset ${name} --type=merge -p '${patch}'`;
  return `${why}; give them its own, also in the template, which replaces them in turn: ${kubectl(zone, pods)} && ${kubectl(zone, set)}`;
}
