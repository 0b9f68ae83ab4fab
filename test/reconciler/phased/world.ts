/**
 * A model of one StatefulSet with its controller and kubelets, of its PhasedRollout and of Prometheus, for the
 * properties of a phased rollout.
 */
import { keepPartition, type ReleaseFields } from "../../../functions/phased/keep-partition.ts";
import { HELD } from "../../../reconciler/phased/target.ts";
import { NOW } from "./builders.ts";
import { runKubelets, sync } from "./world-controllers.ts";
import type { SimulatedPod, World } from "./world-state.ts";

export const THRESHOLD = 2;

export function createWorld({
  replicas,
  ordered,
  maxUnavailable = 1,
  finalCheck = false,
  guarded = false,
}: {
  replicas: number;
  ordered: boolean;
  maxUnavailable?: number;
  finalCheck?: boolean;
  guarded?: boolean;
}): World {
  const pods = new Map(
    Array.from({ length: replicas }, (_, i): [number, SimulatedPod] => [i, { revision: 0, phase: "ready" }]),
  );
  const status = { observed: 1, current: 0, update: 0, updated: replicas, available: replicas, replicas };
  const set = {
    uid: 1,
    version: 1,
    generation: 1,
    ordered,
    maxUnavailable,
    replicas,
    partition: 0,
    template: 0,
    strategy: "RollingUpdate" as const,
  };
  return {
    now: NOW,
    prometheus: "quiet",
    guarded,
    replaced: [],
    made: [],
    set: { ...set, owner: undefined, original: undefined, pods, status },
    rollout: {
      version: 1,
      generation: 1,
      skipCheck: false,
      paused: false,
      finalizer: false,
      status: undefined,
      finalCheck,
    },
  };
}

export const HAPPENINGS = [
  "advance",
  "sync",
  "kubelets",
  "wait",
  "deploy",
  "revert",
  "scaleUp",
  "scaleDown",
  "applyMore",
  "deployMore",
  "wipePartition",
  "raisePartition",
  "lowerPartition",
  "replace",
  "unclaim",
  "break",
  "stumble",
  "fire",
  "clear",
  "lose",
  "pause",
  "resume",
  "suspend",
  "unsuspend",
  "onDelete",
  "rollingUpdate",
  "recreate",
  "remake",
] as const;
export type Happening = (typeof HAPPENINGS)[number];

/** One change by others; `at` picks a pod. */
export function happen(what: Happening, world: World, at: number): void {
  const { set, rollout } = world;
  const pod = set.pods.get(at % Math.max(1, set.replicas));
  const write = (edit: () => void): void => {
    edit();
    set.version++;
    set.generation++;
  };
  const change = (edit: () => void): void => {
    const [before, { owner, original }] = [fieldsOf(world), set];
    write(edit);
    const kept = world.guarded && owner !== undefined ? keepPartition(before, fieldsOf(world)) : undefined;
    if (kept !== undefined) Object.assign(set, { partition: kept, owner, original });
  };
  const more = (): void => void (set.replicas = Math.min(6, set.replicas + 1));
  const edit = (field: "skipCheck" | "paused", value: boolean): void => {
    rollout[field] = value;
    rollout.version++;
    rollout.generation++;
  };
  const moves: Record<Happening, () => void> = {
    advance: () => {
      for (const what of ["sync", "kubelets", "sync", "wait"] as const) happen(what, world, 0);
    },
    sync: () => sync(world),
    kubelets: () => runKubelets(world),
    wait: () => void (world.now += 10_000),
    deploy: () => change(() => set.template++),
    revert: () => change(() => void (set.template = Math.max(0, set.template - 1))),
    // By the subresource, as kubectl scale and autoscalers do: admission sees no StatefulSet.
    scaleUp: () => write(more),
    scaleDown: () => write(() => void (set.replicas = Math.max(1, set.replicas - 1))),
    applyMore: () => change(more),
    deployMore: () => change(() => (more(), set.template++)),
    wipePartition: () => set.strategy === "RollingUpdate" && change(() => void (set.partition = 0)),
    raisePartition: () =>
      set.strategy === "RollingUpdate" && change(() => void (set.partition = Math.min(HELD, set.partition + 1))),
    lowerPartition: () =>
      set.strategy === "RollingUpdate" && change(() => void (set.partition = Math.min(set.partition, at))),
    replace: () =>
      change(() =>
        Object.assign(set, { strategy: "RollingUpdate", partition: 0, owner: undefined, original: undefined }),
      ),
    unclaim: () => change(() => Object.assign(set, { owner: undefined, original: undefined })),
    break: () => pod && pod.phase !== "terminating" && (pod.phase = "broken"),
    stumble: () => pod?.phase === "ready" && (pod.phase = "starting"),
    fire: () => void (world.prometheus = "firing"),
    clear: () => void (world.prometheus = "quiet"),
    lose: () => void (world.prometheus = "down"),
    pause: () => edit("paused", true),
    resume: () => edit("paused", false),
    suspend: () => edit("skipCheck", true),
    unsuspend: () => edit("skipCheck", false),
    onDelete: () => change(() => Object.assign(set, { strategy: "OnDelete", partition: 0 })),
    rollingUpdate: () => change(() => Object.assign(set, { strategy: "RollingUpdate" })),
    recreate: () => recreate(world, { pods: new Map() }),
    // Beside the pods, with another template.
    remake: () => recreate(world, { template: set.template + 1 }),
  };
  moves[what]();
}

function fieldsOf({ set: { template, replicas, strategy, partition } }: World): ReleaseFields {
  return { template, replicas, firstOrdinal: 0, rolls: strategy === "RollingUpdate", partition };
}

function recreate({ set }: World, made: Partial<Pick<World["set"], "pods" | "template">>): void {
  Object.assign(set, {
    uid: set.uid + 1,
    generation: 1,
    version: set.version + 1,
    partition: 0,
    owner: undefined,
    original: undefined,
    strategy: "RollingUpdate",
    ...made,
  });
  set.status = { observed: 0, current: set.template, update: set.template, updated: 0, available: 0, replicas: 0 };
}
