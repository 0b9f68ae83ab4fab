/**
 * Zones that scale by their settings and roll out at the same time, with their pods and their reference. It records
 * violations.
 */
import assert from "node:assert/strict";
import { isHeldByOther } from "../../../infra/kubernetes/lease-object.ts";
import type { Lease } from "../../../infra/kubernetes/resources.ts";
import { MIRROR } from "./mirror-stage.ts";

const HOUR = 3_600_000;
const MIN_TIME = 12 * HOUR;
const DELAY = 1 * HOUR;
export const MAX_UNAVAILABLE = 2;

export interface SimulatedPod {
  uid: string;
  version: number;
  revision: number;
  /** A starting pod has not been ready yet; a failed one has. */
  state: "ready" | "starting" | "failed" | "terminating";
  preparedAt?: number;
}

export interface SimulatedZone {
  readonly name: string;
  readonly annotations: Record<string, string>;
  replicas: number;
  version: number;
  /** The template's revision, and the one recorded as current. */
  template: number;
  current: number;
  observed: boolean;
  /** The last status of the StatefulSet controller. */
  status: { replicas: number; ready: number; updated: number; update: number };
  readonly pods: Map<number, SimulatedPod>;
  /** UIDs of the pods that we removed, by ordinal. */
  readonly lost: Map<number, string>;
  shrunkAt?: number;
}

const NAMES = ["a", "b", "c"].map((letter) => `ingester-zone-${letter}`);
export const SETTINGS = [
  {},
  { "grafana.com/rollout-downscale-leader": "ingester-zone-a" },
  { "grafana.com/rollout-downscale-leader": "ingester-zone-b" },
  MIRROR,
  {
    ...MIRROR,
    "grafana.com/rollout-delayed-downscale": "1h",
    "grafana.com/rollout-prepare-delayed-downscale-url": "http://pod/prepare",
  },
] as const;

/** The changes of a zone between two of our passes; `by` is the amount or picks the pod. */
const CHANGES = {
  time: (world, _zone, by) => void (world.now += by * 45 * 60_000),
  reference: (world, _zone, by) => void (world.reference = by % 7),
  mood: (world, _zone, by) => void (world.podMood = by),
  scale: (_world, zone, by) => change(zone, { replicas: by % 7 }),
  deploy: (world) => world.zones.forEach((zone) => change(zone, { template: zone.template + 1 })),
  revert: (world) => world.zones.forEach((zone) => change(zone, { template: Math.max(0, zone.template - 1) })),
  sync: (world, zone) => sync(world, zone),
  kubelet: (world, zone, by) => runKubelets(world, zone, by),
  settle: (world) => {
    for (let i = 0; i < 3; i++) for (const zone of world.zones) settle(world, zone);
  },
  stumble: (world, zone, by) => {
    const pod = zone.pods.get(by % 7);
    if (pod?.state === "ready") Object.assign(pod, { state: "failed", version: ++world.version });
    else if (pod?.state === "failed") Object.assign(pod, { state: "ready", version: ++world.version });
  },
} satisfies Record<string, (world: World, zone: SimulatedZone, by: number) => void>;

export type Happening = keyof typeof CHANGES;
export const HAPPENING_NAMES = Object.keys(CHANGES) as Happening[];

export function happen(world: World, what: Happening, by: number): void {
  const zone = world.zones[by % world.zones.length];
  if (zone) CHANGES[what](world, zone, by);
}

export function createWorld(settings: readonly number[], sizes: readonly number[]) {
  const violations: string[] = [];
  const zones = NAMES.map((name, i): SimulatedZone => ({
    name,
    annotations: { ...SETTINGS[settings[i] ?? 0], "rollout-max-unavailable": String(MAX_UNAVAILABLE) },
    replicas: sizes[i] ?? 1,
    version: 1,
    template: 0,
    current: 0,
    observed: true,
    status: { replicas: 0, ready: 0, updated: 0, update: 0 },
    pods: new Map(),
    lost: new Map(),
  }));
  const world = {
    zones,
    violations,
    reference: 3,
    now: 100 * HOUR,
    podMood: 0,
    version: 1,
    touched: new Set<string>(),
    /** The downscale Lease of the group, if there is one. */
    lease: undefined as Lease | undefined,
  };
  CHANGES.settle(world);
  return world;
}

export type World = ReturnType<typeof createWorld>;

export const zoneNamed = ({ zones }: World, name: string): SimulatedZone =>
  zones.find((zone) => zone.name === name) ?? assert.fail(name);

/** Another client changes the spec; the controller has not observed it yet. */
function change(zone: SimulatedZone, spec: Partial<Pick<SimulatedZone, "replicas" | "template">>): void {
  Object.assign(zone, { ...spec, version: zone.version + 1, observed: false });
}

/** The StatefulSet controller: deletes surplus pods, creates missing ones, and writes the status. */
function sync(world: World, zone: SimulatedZone): void {
  for (const [ordinal, pod] of zone.pods)
    if (ordinal >= zone.replicas) Object.assign(pod, { state: "terminating", version: ++world.version });
  for (let ordinal = 0; ordinal < zone.replicas; ordinal++)
    if (!zone.pods.has(ordinal))
      zone.pods.set(ordinal, {
        uid: `u${++world.version}`,
        version: world.version,
        revision: zone.template,
        state: "starting",
      });
  const pods = [...zone.pods.values()];
  zone.status = {
    replicas: pods.length,
    ready: pods.filter(({ state }) => state === "ready").length,
    updated: pods.filter(({ revision }) => revision === zone.template).length,
    update: zone.template,
  };
  Object.assign(zone, { observed: true, version: zone.version + 1 });
}

/** The kubelets: terminating pods end and starting ones become ready; every second time only one pod. */
function runKubelets(world: World, zone: SimulatedZone, by: number): void {
  const moving = [...zone.pods].filter(([, { state }]) => state === "terminating" || state === "starting");
  for (const [ordinal, pod] of by % 2 === 0 ? moving : moving.slice(0, 1)) {
    if (pod.state === "terminating") zone.pods.delete(ordinal);
    else Object.assign(pod, { state: "ready", version: ++world.version });
  }
}

function settle(world: World, zone: SimulatedZone): void {
  sync(world, zone);
  runKubelets(world, zone, 0);
  sync(world, zone);
}

/** Pods that we removed and that are not recreated yet, or not gone yet after a downscale. */
function losses(zone: SimulatedZone): number[] {
  for (const [ordinal, uid] of zone.lost) {
    const pod = zone.pods.get(ordinal);
    const isSpared = pod?.uid === uid && pod.state !== "terminating" && ordinal < zone.replicas;
    const isRecreated = pod !== undefined && pod.uid !== uid && pod.state !== "starting";
    if (isSpared || isRecreated || (!pod && ordinal >= zone.replicas)) zone.lost.delete(ordinal);
  }
  return [...zone.lost.keys()];
}

function blameOthers(world: World, zone: SimulatedZone, what: string): void {
  for (const other of world.zones)
    if (other !== zone && losses(other).length > 0)
      world.violations.push(`${what} while ${other.name} loses ${losses(other).join(", ")}`);
}

/** We delete a pod of the zone. */
export function lose(world: World, zone: SimulatedZone, ordinal: number, pod: SimulatedPod): void {
  world.touched.add(zone.name);
  // A pod that has never been ready serves nothing: nobody loses it.
  if (pod.state !== "starting") blameOthers(world, zone, `${zone.name}-${ordinal} was deleted`);
  const down = losses(zone).filter((other) => other < zone.replicas);
  if (pod.state === "ready" && down.length >= MAX_UNAVAILABLE)
    world.violations.push(`${zone.name}-${ordinal} was deleted beside ${down.join(", ")}`);
  zone.lost.set(ordinal, pod.uid);
  Object.assign(pod, { state: "terminating", version: ++world.version });
}

/** We change the replicas of the zone. */
export function scaleTo(world: World, zone: SimulatedZone, to: number): void {
  world.touched.add(zone.name);
  if (to < zone.replicas) shrink(world, zone, to);
  change(zone, { replicas: to });
}

function shrink(world: World, zone: SimulatedZone, to: number): void {
  const { violations, lease } = world;
  if (!lease || !isHeldByOther(lease, "", world.now))
    violations.push(`${zone.name} shrank without the downscale Lease`);
  const leader = zone.annotations["grafana.com/rollout-downscale-leader"];
  const least = leader === undefined ? world.reference : zoneNamed(world, leader).replicas;
  if (to < least) violations.push(`${zone.name} shrank to ${to}, below ${least}`);
  for (let i = to; i < zone.replicas; i++) {
    const pod = zone.pods.get(i);
    if (pod) zone.lost.set(i, pod.uid);
    if (!("grafana.com/rollout-delayed-downscale" in zone.annotations)) continue;
    const at = pod?.preparedAt;
    if (at === undefined || world.now - at < DELAY)
      violations.push(`${zone.name}-${i} went ${at === undefined ? "unprepared" : "too early"}`);
  }
  const gone = [...zone.pods].filter(([ordinal]) => ordinal >= to);
  for (const other of world.zones)
    if (other !== zone && other.shrunkAt !== undefined && world.now - other.shrunkAt <= MIN_TIME)
      violations.push(`${zone.name} shrank too soon after ${other.name}`);
  if (gone.some(([, { state }]) => state !== "starting")) blameOthers(world, zone, `${zone.name} shrank`);
  zone.shrunkAt = world.now;
}
