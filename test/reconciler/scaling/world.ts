/**
 * Zones on a small cluster that scale by their settings and roll out at the same time, with their reference. It records
 * violations.
 */
import assert from "node:assert/strict";
import { isHeldByOther } from "../../../infra/kubernetes/lease-object.ts";
import type { Lease } from "../../../infra/kubernetes/resources.ts";
import type { Pod, StatefulSet } from "../../emulator/controllers/objects.ts";
import { isTerminating } from "../../emulator/controllers/objects.ts";
import { put } from "../../emulator/objects.ts";
import { selectedBeside } from "../builders.ts";
import { createSmallCluster, imageOf, NAMESPACE, ordinalOf, type SmallCluster } from "../small-cluster.ts";
import { MIRROR } from "./mirror-stage.ts";

const HOUR = 3_600_000;
const MIN_TIME = 12 * HOUR;
const DELAY = 1 * HOUR;
export const MAX_UNAVAILABLE = 2;
export const TEMPLATES = { group: "g", version: "v1", plural: "replicatemplates" };

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
  time: ({ cluster }, _zone, by) => cluster.elapse(by * 45 * 60_000),
  reference: (world, _zone, by) => setReference(world, by % 7),
  mood: (world, _zone, by) => void (world.podMood = by),
  scale: ({ cluster }, zone, by) => cluster.change(zone, { replicas: by % 7 }),
  deploy: (world) => deploy(world, (template) => template + 1),
  revert: (world) => deploy(world, (template) => Math.max(0, template - 1)),
  sync: ({ cluster }, zone) => void cluster.sync(zone),
  kubelet: (world, zone, by) => runKubelets(world, zone, by),
  settle: ({ cluster }) => cluster.settle(),
  stumble: ({ cluster }, zone, by) => {
    const name = `${zone}-${by % 7}`;
    const life = cluster.lifeOf(cluster.pod(name));
    // Longer than a kubelet's first report takes: it was Ready in between.
    cluster.elapse(20_000);
    if (life === "ready") cluster.ail(name, "failed");
    else if (life === "failed") cluster.ail(name, "ready");
  },
} satisfies Record<string, (world: World, zone: string, by: number) => void>;

export type Happening = keyof typeof CHANGES;
export const HAPPENING_NAMES = Object.keys(CHANGES) as Happening[];

export function happen(world: World, what: Happening, by: number): void {
  CHANGES[what](world, NAMES[by % NAMES.length] ?? "", by);
}

export function createWorld(settings: readonly number[], sizes: readonly number[]) {
  const cluster = createSmallCluster(100 * HOUR);
  for (const [i, name] of NAMES.entries())
    cluster.addSet({
      name,
      replicas: sizes[i] ?? 1,
      annotations: { ...SETTINGS[settings[i] ?? 0], "rollout-max-unavailable": String(MAX_UNAVAILABLE) },
      labels: { "grafana.com/min-time-between-zones-downscale": "12h" },
      selected: selectedBeside(name),
    });
  cluster.store.create(KEY, {
    apiVersion: "g/v1",
    kind: "ReplicaTemplate",
    metadata: { namespace: NAMESPACE, name: "template" },
    spec: { replicas: 3 },
    status: {},
  });
  cluster.settle();
  return {
    cluster,
    violations: [] as string[],
    podMood: 0,
    touched: new Set<string>(),
    /** UIDs of the pods that we removed, by zone and ordinal. */
    lost: new Map(NAMES.map((name) => [name, new Map<number, string>()])),
    /** When each zone was last scaled down. */
    shrunkAt: new Map<string, number>(),
    /** Since when each pod prepares to go, by its UID. */
    preparedAt: new Map<string, number>(),
  };
}

export type World = ReturnType<typeof createWorld>;

const KEY = `${TEMPLATES.plural}.${TEMPLATES.group}`;

function setReference({ cluster: { store } }: World, replicas: number): void {
  const template = store.get(KEY, NAMESPACE, "template") ?? assert.fail();
  store.update(KEY, put(template, ["spec", "replicas"], replicas));
}

const reference = ({ cluster: { store } }: World): number =>
  (store.get(KEY, NAMESPACE, "template")?.["spec"] as { readonly replicas: number }).replicas;

function deploy({ cluster }: World, next: (template: number) => number): void {
  for (const name of NAMES) {
    const template = Number(imageOf(cluster.set(name).spec.template).slice("app:".length));
    cluster.changeTemplate(name, { image: `app:${next(template)}` });
  }
}

/** The kubelets: terminating pods end and starting ones become ready; every second time only one pod. */
function runKubelets({ cluster }: World, zone: string, by: number): void {
  const moving = cluster.podsOf(zone).filter((pod) => ["terminating", "starting"].includes(cluster.lifeOf(pod)));
  for (const { metadata } of by % 2 === 0 ? moving : moving.slice(0, 1)) cluster.runOut(metadata.name);
}

/** A pod that has not been ready, or should have been gone, for so long does not come back by itself (§1.4a). */
const RECOVERY_MS = 5 * 60_000;

/** Pods that we removed and that are not recreated yet, or not gone yet after a downscale. */
function losses({ cluster, lost }: World, zone: string): number[] {
  const removed = lost.get(zone) ?? new Map<number, string>();
  const replicas = cluster.set(zone).spec.replicas ?? 0;
  for (const [ordinal, uid] of removed) {
    const pod = cluster.pod(`${zone}-${ordinal}`);
    const isSpared = pod?.metadata.uid === uid && !isTerminating(pod) && ordinal < replicas;
    const isRecreated = pod !== undefined && pod.metadata.uid !== uid && cluster.lifeOf(pod) !== "starting";
    if (isSpared || isRecreated || (!pod && ordinal >= replicas)) removed.delete(ordinal);
  }
  return [...removed.keys()].filter((ordinal) => !isStuck(cluster, cluster.pod(`${zone}-${ordinal}`)));
}

function blameOthers(world: World, zone: string, what: string): void {
  for (const other of NAMES)
    if (other !== zone && losses(world, other).length > 0)
      world.violations.push(`${what} while ${other} loses ${losses(world, other).join(", ")}`);
}

/** It should have been gone for so long that nobody waits for it. */
const isStuck = (cluster: SmallCluster, pod: Pod | undefined): boolean =>
  cluster.now() - Date.parse(pod?.metadata.deletionTimestamp ?? "") >= RECOVERY_MS;

/** Nobody loses anything by its deletion: it was never ready, has not been for long, or should have been gone. */
function servesNothing({ cluster }: World, pod: Pod): boolean {
  const life = cluster.lifeOf(pod);
  const ready = pod.status.conditions?.find(({ type }) => type === "Ready");
  const isOverdue = cluster.now() - Date.parse(ready?.lastTransitionTime ?? "") >= RECOVERY_MS;
  return life === "starting" || (life === "failed" && isOverdue) || isStuck(cluster, pod);
}

/** We have deleted this pod of the zone, as it was before. */
export function lose(world: World, pod: Pod): void {
  const { cluster, lost, touched, violations } = world;
  const zone = pod.metadata.name.replace(/-\d+$/, "");
  touched.add(zone);
  if (servesNothing(world, pod)) return;
  blameOthers(world, zone, `${pod.metadata.name} was deleted`);
  const own = ordinalOf(pod);
  const isWanted = (other: number): boolean => other < (cluster.set(zone).spec.replicas ?? 0);
  const down = losses(world, zone).filter((other) => other !== own && isWanted(other));
  if (cluster.lifeOf(pod) === "ready" && down.length >= MAX_UNAVAILABLE)
    violations.push(`${pod.metadata.name} was deleted beside ${down.join(", ")}`);
  lost.get(zone)?.set(own, pod.metadata.uid);
}

/** We have changed the replicas of the zone, which was this. */
export function scaleTo(world: World, set: StatefulSet, to: number): void {
  world.touched.add(set.metadata.name);
  if (to < (set.spec.replicas ?? 0)) shrink(world, set, to);
}

function shrink(world: World, { metadata, spec }: StatefulSet, to: number): void {
  const { cluster, violations, lost, shrunkAt, preparedAt } = world;
  const { name, annotations = {} } = metadata;
  const now = cluster.now();
  const lease = cluster.store.list("leases.coordination.k8s.io", NAMESPACE)[0] as unknown as Lease | undefined;
  if (!lease || !isHeldByOther(lease, "", now)) violations.push(`${name} shrank without the downscale Lease`);
  const leader = annotations["grafana.com/rollout-downscale-leader"];
  const least = leader === undefined ? reference(world) : (cluster.set(leader).spec.replicas ?? 0);
  if (to < least) violations.push(`${name} shrank to ${to}, below ${least}`);
  const going = Array.from({ length: (spec.replicas ?? 0) - to }, (_, i) => to + i);
  for (const ordinal of going) {
    const pod = cluster.pod(`${name}-${ordinal}`);
    if (pod && !servesNothing(world, pod)) lost.get(name)?.set(ordinal, pod.metadata.uid);
    if (!("grafana.com/rollout-delayed-downscale" in annotations)) continue;
    const at = preparedAt.get(pod?.metadata.uid ?? "");
    if (at === undefined || now - at < DELAY)
      violations.push(`${name}-${ordinal} went ${at === undefined ? "unprepared" : "too early"}`);
  }
  for (const [other, at] of shrunkAt)
    if (other !== name && now - at <= MIN_TIME) violations.push(`${name} shrank too soon after ${other}`);
  const gone = cluster.podsOf(name).filter((pod) => ordinalOf(pod) >= to);
  if (gone.some((pod) => !servesNothing(world, pod))) blameOthers(world, name, `${name} shrank`);
  shrunkAt.set(name, now);
}
