/** A group of zones on a small cluster, and what happens to it, for the properties of the rollout. */
import type { StatefulSet } from "../../emulator/controllers/objects.ts";
import { isTrue } from "../../emulator/objects.ts";
import { CREATED, type GroupObjects } from "../builders.ts";
import type { Decision } from "./adapter.ts";
import { createSmallCluster, imageOf, type SmallCluster, type Template } from "../small-cluster.ts";

/** All changes of a group by others. */
export const HAPPENINGS = [
  "recover",
  "stumble",
  "crash",
  "limp",
  "run",
  "sync",
  "syncAll",
  "deploy",
  "revert",
  "pause",
  "resume",
  "fill",
  "free",
] as const;
export type Happening = (typeof HAPPENINGS)[number];

export const PAUSED = "grafana.com/rollout-paused";

export function createWorld(
  sizes: readonly number[],
  maxUnavailable: number,
  {
    annotationsOf = () => ({}),
    template,
  }: { readonly annotationsOf?: (zone: number) => Record<string, string>; readonly template?: Template } = {},
): SmallCluster {
  const cluster = createSmallCluster();
  const selected = { "rollout-group": "ingester" };
  for (const [i, replicas] of sizes.entries()) {
    const annotations = { "rollout-max-unavailable": String(maxUnavailable), ...annotationsOf(i) };
    cluster.addSet({ name: `ingester-zone-${"abcd".charAt(i)}`, replicas, annotations, selected }, template);
  }
  cluster.settle();
  return cluster;
}

/** Longer than a kubelet's first report takes: what turns later than that was Ready in between. */
const STEP_MS = 20_000;

/** Applies one change to a zone, or to its pod picked by `at`; does nothing if it is impossible. */
export function happen(what: Happening, cluster: SmallCluster, in_: StatefulSet, at: number): void {
  cluster.elapse(STEP_MS);
  const { name } = in_.metadata;
  const pods = cluster.podsOf(name);
  const pod = pods[at % Math.max(1, pods.length)];
  const life = cluster.lifeOf(pod);
  const podName = pod?.metadata.name ?? "";
  const moves: Record<Happening, () => void> = {
    recover: () => cluster.ail(podName, "ready"),
    stumble: () => life === "ready" && cluster.ail(podName, "failed"),
    crash: () => ["ready", "starting", "failed"].includes(life) && cluster.ail(podName, "crashing"),
    limp: () => ["ready", "starting", "failed"].includes(life) && cluster.ail(podName, "limping"),
    run: () => cluster.run(podName),
    sync: () => cluster.sync(name),
    syncAll: () => cluster.sets().forEach(({ metadata }) => cluster.sync(metadata.name)),
    deploy: () => deploy(cluster, (template) => template + 1),
    revert: () => deploy(cluster, (template) => Math.max(0, template - 1)),
    pause: () => cluster.annotate(name, { [PAUSED]: "true" }),
    // A quota of the namespace lets the controllers create no pods, or some again.
    fill: () => cluster.limitPods(true),
    free: () => cluster.limitPods(false),
    resume: () => cluster.annotate(name, { [PAUSED]: undefined }),
  };
  moves[what]();
}

function deploy(cluster: SmallCluster, next: (template: number) => number): void {
  for (const { metadata, spec } of cluster.sets())
    cluster.changeTemplate(metadata.name, {
      image: `app:${next(Number(imageOf(spec.template).slice("app:".length)))}`,
    });
}

/**
 * What a tick would gather: statuses as last written, pods as they currently are, at a time at which none of them has
 * been not ready for long.
 */
export const observe = (cluster: SmallCluster): GroupObjects => ({ ...cluster.objects(), now: CREATED });

/** Executes a decision. */
export function carryOut(decision: NonNullable<Decision>, cluster: SmallCluster): void {
  if (decision.action === "hold") return;
  if (decision.action === "finishZone") cluster.finish(decision.zone.name);
  else for (const { name } of decision.pods) cluster.remove(name);
}

/**
 * Kubelets and controllers do all they can: only a pod that crash-loops or limps and is not deleted stays unchanged.
 */
export function calmDown(cluster: SmallCluster): void {
  cluster.limitPods(false);
  for (const { metadata } of cluster.store.list("pods"))
    if (cluster.lifeOf(cluster.pod(metadata.name)) === "failed") cluster.ail(metadata.name, "ready");
  cluster.settle();
}

export const isPaused = ({ metadata }: StatefulSet): boolean => metadata.annotations?.[PAUSED] !== undefined;

/** What the counts of ready pods in a status say beside the pods. */
export const lags = (cluster: SmallCluster, { metadata, status }: StatefulSet): boolean =>
  (status?.readyReplicas ?? 0) !== cluster.podsOf(metadata.name).filter((pod) => isTrue(pod, "Ready")).length;
