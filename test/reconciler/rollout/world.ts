/** A group of zones on a small cluster, and what happens to it, for the properties of the rollout. */
import type { StatefulSet } from "../../emulator/controllers/objects.ts";
import type { GroupObjects } from "../../builders/groups.ts";
import { CREATED } from "../../builders/zones.ts";
import type { Decision } from "./adapter.ts";
import { createSmallCluster, imageOf, type Life, type SmallCluster, type Template } from "../small-cluster.ts";

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

/** A zone, and a pod of it if it has any. */
interface Target {
  readonly cluster: SmallCluster;
  readonly zone: string;
  readonly pod: string;
  readonly life: Life;
}

const isRunning = ({ life }: Target): boolean => ["ready", "starting", "failed"].includes(life);

/** All changes of a group by others; each does nothing if it is impossible. */
const MOVES = {
  recover: ({ cluster, pod }) => cluster.ail(pod, "ready"),
  stumble: ({ cluster, pod, life }) => life === "ready" && cluster.ail(pod, "failed"),
  crash: (target) => isRunning(target) && target.cluster.ail(target.pod, "crashing"),
  limp: (target) => isRunning(target) && target.cluster.ail(target.pod, "limping"),
  run: ({ cluster, pod }) => cluster.run(pod),
  sync: ({ cluster, zone }) => cluster.sync(zone),
  syncAll: ({ cluster }) => cluster.sets().forEach(({ metadata }) => cluster.sync(metadata.name)),
  deploy: ({ cluster }) => deploy(cluster, (template) => template + 1),
  revert: ({ cluster }) => deploy(cluster, (template) => Math.max(0, template - 1)),
  pause: ({ cluster, zone }) => cluster.annotate(zone, { [PAUSED]: "true" }),
  resume: ({ cluster, zone }) => cluster.annotate(zone, { [PAUSED]: undefined }),
  // A quota of the namespace lets the controllers create no pods, or some again.
  fill: ({ cluster }) => cluster.limitPods(true),
  free: ({ cluster }) => cluster.limitPods(false),
} satisfies Record<string, (target: Target) => unknown>;
export type Happening = keyof typeof MOVES;
export const HAPPENINGS = Object.keys(MOVES) as Happening[];

/** Applies one change to a zone, or to its pod picked by `at`. */
export function happen(what: Happening, cluster: SmallCluster, { metadata }: StatefulSet, at: number): void {
  cluster.elapse(STEP_MS);
  const pods = cluster.podsOf(metadata.name);
  const pod = pods[at % Math.max(1, pods.length)];
  const target = { cluster, zone: metadata.name, pod: pod?.metadata.name ?? "", life: cluster.lifeOf(pod) };
  MOVES[what](target);
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
