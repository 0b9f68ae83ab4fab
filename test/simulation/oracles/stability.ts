/** The second oracle: once faults and people have stopped, everything is settled, and then nothing is written. */
import { dig, isTrue, numberOf, textOf } from "../../emulator/objects.ts";
import type { KubeObject, Store, StoreEvent } from "../../emulator/store.ts";
import { untrusted } from "../certificates/trust.ts";
import { GATES, PHASED_ROLLOUTS } from "../checks/objects.ts";
import { isGroupHeld, unsettledPhased } from "../checks/stability.ts";
import { untrueStatus } from "./group-status.ts";
import { BUDGETS, GROUP, LEASES, NAMESPACE, ROLLOUT_GROUPS, TWIN } from "../names.ts";
import { POLICIES } from "../nodes/shape.ts";
import { unsettledNodes } from "../nodes/stability.ts";
import { type Shape, TEMPLATES } from "../shape.ts";
import { twinShape } from "../wider.ts";
import type { World } from "../world.ts";

type FinalWorld = Pick<World, "prepared" | "leaving" | "shown" | "fleet"> & {
  readonly store: Pick<Store, "get" | "list">;
};

/** What is not as it was asked for, in words. */
export function findUnsettled(world: FinalWorld, shape: Shape, now: number): readonly string[] {
  const { store, prepared, leaving } = world;
  const isHeld = isGroupHeld(store, shape);
  return [
    ...shape.zones.flatMap((zone) => unsettledZone(store, zone, isHeld)),
    ...(shape.twin === "well" ? twinShape(shape).zones.flatMap((zone) => unsettledZone(store, zone, false, TWIN)) : []),
    ...untrueStatus(store, shape.zones, isHeld),
    ...unsettledPhased(store, shape),
    ...(world.fleet ? unsettledNodes(store, world.fleet, isHeld) : []),
    ...(shape.certificate ? untrusted(store, world.shown(), now) : []),
    ...(shape.followers ? shape.zones.slice(1).flatMap((zone, i) => unlikeLeader(store, zone, shape.zones[i])) : []),
    ...(shape.mirrored ? unlikeTemplate(store, shape.zones) : []),
    ...[...prepared, ...leaving.keys()].flatMap((uid) => {
      const pod = store.list("pods", NAMESPACE).find(({ metadata }) => metadata.uid === uid);
      return pod ? [`pod ${pod.metadata.name} was left prepared for its shutdown`] : [];
    }),
    ...store
      .list(BUDGETS, NAMESPACE)
      .flatMap((budget) => Object.keys((dig(budget, "status", "disruptedPods") as object | undefined) ?? {}))
      .map((pod) => `a reservation of ${pod} is left`),
  ];
}

/** Leases that nobody gives back, and that hold others up: of a process that has ended, and not expired yet. */
export function findLeasesOfTheDead(
  store: Pick<Store, "list">,
  alive: readonly string[],
  now: number,
): readonly string[] {
  return store.list(LEASES, NAMESPACE).flatMap((lease) => {
    const holder = textOf(dig(lease, "spec", "holderIdentity")) ?? "";
    const expiresAt =
      Date.parse(textOf(dig(lease, "spec", "renewTime")) ?? "") +
      1000 * (numberOf(dig(lease, "spec", "leaseDurationSeconds")) ?? 0);
    const isHeld = holder !== "" && !(expiresAt < now);
    return isHeld && !alive.some((name) => holder.startsWith(`${name}_`))
      ? [`Lease ${lease.metadata.name} is left to ${holder}, which has ended`]
      : [];
  });
}

const replicasOf = (store: FinalWorld["store"], zone = ""): unknown =>
  dig(store.get("statefulsets.apps", NAMESPACE, zone), "spec", "replicas");

function unlikeLeader(store: FinalWorld["store"], zone: string, leader: string | undefined): string[] {
  const [own, wanted] = [replicasOf(store, zone), replicasOf(store, leader)];
  return own === wanted
    ? []
    : [`${zone} has ${String(own)} replicas, and ${leader}, which it follows, ${String(wanted)}`];
}

/** Its status tells an autoscaler how many replicas the zones have. */
function unlikeTemplate(store: FinalWorld["store"], zones: readonly string[]): string[] {
  const template = store.get(TEMPLATES, NAMESPACE, GROUP);
  const wanted = dig(template, "spec", "replicas");
  return [
    ...zones
      .filter((zone) => replicasOf(store, zone) !== wanted)
      .map(
        (zone) => `${zone} has ${String(replicasOf(store, zone))} replicas instead of the ${String(wanted)} mirrored`,
      ),
    ...((dig(template, "status", "replicas") ?? 0) === wanted
      ? []
      : [`the status of the template is not ${String(wanted)}`]),
  ];
}

/** A gate that holds zones keeps their outdated pods; those that were lost have come back with the new template. */
function unsettledZone(store: FinalWorld["store"], zone: string, isHeld: boolean, namespace = NAMESPACE): string[] {
  const set = store.get("statefulsets.apps", namespace, zone);
  if (!set) return [];
  const replicas = Number(dig(set, "spec", "replicas"));
  const revision = dig(set, "status", "updateRevision");
  const pods = store.list("pods", namespace).filter(({ metadata }) => metadata.labels?.["name"] === zone);
  const isOutdated = ({ metadata }: KubeObject): boolean => metadata.labels?.["controller-revision-hash"] !== revision;
  return [
    ...(pods.length === replicas ? [] : [`${zone} has ${pods.length} pods instead of ${replicas}`]),
    ...(isHeld || dig(set, "status", "currentRevision") === revision ? [] : [`${zone} keeps an old currentRevision`]),
    ...pods.flatMap((pod) => [
      ...(isHeld || !isOutdated(pod) ? [] : [`pod ${pod.metadata.name} is outdated`]),
      ...(isTrue(pod, "Ready") ? [] : [`pod ${pod.metadata.name} is not ready`]),
    ]),
  ];
}

/** Writes that go on in a settled world: the reconcilers' Lease and Events, and what the status says of its own time. */
const GOES_ON = new Set([LEASES, "events", ROLLOUT_GROUPS]);

/**
 * True for a write that a settled world does not see. A check that does not pass is asked again and again, and a
 * certificate that lasts an hour is renewed.
 */
export const isUnrest = ({ resource, object }: StoreEvent, shape: Shape): boolean =>
  (object.metadata.namespace === NAMESPACE ||
    object.metadata.namespace === TWIN ||
    resource === "nodes" ||
    resource === POLICIES) &&
  // Its status says whether the window is open.
  !(resource === POLICIES && (shape.nodes?.windowed || shape.nodes?.oneShot)) &&
  !GOES_ON.has(resource) &&
  !(resource === "secrets" && shape.certificate !== undefined) &&
  !(resource === GATES && shape.gate?.last !== "good") &&
  !(resource === PHASED_ROLLOUTS && shape.phased?.last !== "good");
