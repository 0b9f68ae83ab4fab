/** Cures for pods that are not ready: the best first, with real names; none touches a healthy pod. Pure. */
import type { StoredBudget } from "../budget/zpdb.ts";
import { LABELS } from "../model/annotations.ts";
import { isReady } from "../model/health.ts";
import { listSome } from "../../infra/cut.ts";
import { ownerNameOf } from "../model/order.ts";
import { NAMED, OUTSIDE, REPLACED } from "../model/orphans.ts";
import type { Pod } from "../model/pod.ts";
import { STRANGERS } from "../model/readiness.ts";
import { either, how, kubectl, zonewise } from "../model/remedy.ts";
import { isZoneRecorded, type Zone, type ZoneWithPods } from "../model/zone.ts";

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

/**
 * The command that gives a zone replicas. A zone that takes its replicas from elsewhere does not keep those of a
 * command.
 */
export function growZone(zone: Zone, replicas: number): string {
  const { leader, mirror } = zone.scaling;
  if (leader !== undefined) return kubectl(zone, `scale statefulset ${leader} --replicas=${replicas}`);
  if (mirror) return how(`give ${mirror.kind} ${mirror.name} more than 0 replicas`, kubectl(zone, "get hpa"));
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
  const fix = how("fix the template", kubectl(context, `edit statefulset ${all}`));
  // Undo leaves zones that have finished as they are.
  if (ill.every(({ zone }) => isZoneRecorded(zone))) return fix;
  return either(how("undo the rollout in the zones under way", zonewise(context, `undo ${context.group}`)), fix);
}

/** In the order in which they are proposed. */
const CURES: Readonly<Record<Exclude<Cause, "unknown">, Cure>> = {
  pod: (context, ill) =>
    how(
      ill.length > 1
        ? "delete the pods; their StatefulSet recreates them"
        : "delete the pod; its StatefulSet recreates it",
      kubectl(context, `delete pod ${podNames(ill)}`),
    ),
  template: cureTemplate,
  outdated: (_context, ill) =>
    `wait: ${podNames(ill)} has an earlier template and does not serve, so it is replaced next`,
  room: (context, ill) =>
    how(
      `no node has room for ${podNames(ill)}, or a volume is missing; see why`,
      kubectl(context, `describe pod ${podNames(ill)}`),
    ),
  starting: (context, ill) =>
    how(
      `wait for ${podNames(ill)}; if it does not become ready, delete it, and its StatefulSet recreates it`,
      kubectl(context, `delete pod ${podNames(ill)}`),
    ),
  startingAnew: (context, ill) =>
    `wait for ${podNames(ill)}; if it does not become ready, ${cureTemplate(context, ill)}`,
  terminating: (context, ill) =>
    how(
      `wait until ${podNames(ill)} is gone; if that takes long, see which finalizer or lost node keeps it`,
      kubectl(context, `get pod ${podNames(ill)} -o yaml`),
    ),
};

/** Pods that their controller does not make: a full quota, or an admission that refuses them. */
function cureMissing(context: RuleContext): string[] {
  const names = new Set(named("StatefulSet")(context));
  const short = context.zones.find(({ name, pods, replicas }) => names.has(name) && pods.length < replicas);
  if (!short) return [];
  const { name, pods, replicas } = short;
  return [
    how(`${name} has ${pods.length} of ${replicas} pods; see why`, kubectl(context, `describe statefulset ${name}`)),
    how("if a quota is full, free it", kubectl(context, "describe resourcequota")),
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
  const isShown = all.some((one) => one.split("\n").includes(look));
  return either(...(all.length > 0 ? all : [otherwise]), isShown ? "" : how("look", look));
}

/** `db-zone-a-0, db-zone-b-0` */
export const listNames = (names: readonly string[]): string => listSome(names);

/** Pods whose StatefulSet is gone, or is none of their group's. */
export function cureOrphans(context: RuleContext): string {
  if (context.message.includes(STRANGERS)) {
    const left = named("Pod")(context).join(" ");
    return either(
      how(
        "delete the pods that were left behind, one after the other; the StatefulSet then creates its own",
        kubectl(context, `delete pod ${left}`),
      ),
      "create the StatefulSet again with a selector that matches them",
    );
  }
  if (context.message.includes(NAMED)) return curePods({ ...context, objects: context.objects.slice(1) });
  const owners = named("Pod")(context).map(ownerNameOf);
  // Of a group without any StatefulSet the hold names no pods.
  const names = [...new Set(owners.length > 0 ? owners : named("StatefulSet")(context))].join(" ");
  const relabel = kubectl(context, `label --overwrite statefulset ${names} ${LABELS.rolloutGroup}=${context.group}`);
  if (context.message.includes(OUTSIDE)) return how("take it back into the group", relabel);
  const list = kubectl(context, `get pods -l ${LABELS.rolloutGroup}=${context.group}`);
  if (context.message.includes(REPLACED))
    return how(`delete the pods that StatefulSet ${names} should not have, or create it again as it was`, list);
  return either(
    `create StatefulSet ${names} again as it was; it adopts its pods and creates the missing ones`,
    how("if the zone should go, delete all of its pods", list),
  );
}

/** True if the other zones are healthy but not updated: meanwhile a webhook refuses a downscale. */
export function isOutdatedOnly(context: RuleContext): boolean {
  const names = new Set(named("StatefulSet")(context).slice(1));
  const waiting = context.zones.filter(({ name }) => names.has(name));
  return (
    waiting.length > 0 &&
    waiting.every(
      ({ pods, replicas, status }) => pods.length === replicas && pods.every(isReady) && status.updated < replicas,
    )
  );
}

/** Corrects the window of a zone, and of the zones that have the same one: each would wait for it in turn. */
export function cureWindow(context: RuleContext): string {
  const [first = ""] = named("StatefulSet")(context);
  const windowOf = (name: string): string => JSON.stringify(context.zones.find((zone) => zone.name === name)?.window);
  const alike = context.zones.map(({ name }) => name).filter((name) => windowOf(name) === windowOf(first));
  return how(
    "correct the annotation that the message names",
    kubectl(context, `edit statefulset ${alike.length > 0 ? alike.join(" ") : first}`),
  );
}
