/** Groups of zones: their objects, and what the product reads in them. */
import type { PodObject, StatefulSet } from "../../infra/kubernetes/resources.ts";
import { readPod } from "../../reconciler/model/pod.ts";
import { type GroupSnapshot, readZone, withPods, type ZoneWithPods } from "../../reconciler/model/zone.ts";
import type { World } from "../../reconciler/plan/world.ts";
import {
  CREATED,
  leftBehind,
  NOON,
  podObjects,
  statefulSetObject,
  traitsOf,
  type ZoneScene,
  type ZoneTraits,
} from "./zones.ts";

/** A zone with its pods: the input of the rules. */
export function zone(traits: ZoneTraits = {}): ZoneWithPods {
  return withPods(readZone(statefulSetObject(traits)), podObjects(traits).map(readPod));
}

/** A group of zones a, b, c…, one for each sketch or set of traits. */
export function group(...zones: readonly ZoneScene[]): GroupSnapshot {
  return { zones: named(zones).map(zone), now: CREATED };
}

export interface GroupObjects {
  readonly statefulSets: readonly StatefulSet[];
  readonly pods: readonly PodObject[];
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/** Its objects, and the pods that a StatefulSet has left behind. */
export function objectsOf(zones: readonly ZoneScene[], left?: ZoneTraits): GroupObjects {
  const traits = named(zones);
  return {
    statefulSets: traits.map(statefulSetObject),
    pods: [...traits.flatMap(podObjects), ...(left ? leftBehind(left) : [])],
    now: CREATED,
  };
}

/** max-unavailable is 2 without an annotation, as in the original's fixtures. */
const named = (zones: readonly ZoneScene[]): ZoneTraits[] =>
  zones.map(traitsOf).map((traits, i) => ({
    name: `ingester-zone-${"abcdefgh".charAt(i)}`,
    ...traits,
    annotations: { "rollout-max-unavailable": "2", ...traits.annotations },
  }));

/** What a look ahead starts from: these zones, without budgets and gates; each pod takes a minute to become ready. */
export function worldOf(zones: readonly ZoneWithPods[], more: Partial<World> = {}): World {
  return {
    namespace: "test",
    group: "ingester",
    zones,
    budgets: [],
    gates: [],
    tracked: new Map(),
    references: new Map(),
    preparedAt: new Map(),
    readyMs: new Map(zones.map(({ uid }) => [uid, 60_000])),
    now: NOON,
    ...more,
  };
}
