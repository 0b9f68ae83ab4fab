/** A model of one StatefulSet with its controller and kubelets, of its PhasedRollout and of Prometheus, for the properties of a phased rollout. */
import type { PodObject } from "../../../infra/kubernetes/resources.ts";
import type { QueryAnswer } from "../../../infra/prometheus/answer.ts";
import { readPod } from "../../../reconciler/model/pod.ts";
import { readPhasedRollout } from "../../../reconciler/phased/phased-rollout.ts";
import type { PhasedDecision, PhasedSnapshot } from "../../../reconciler/phased/snapshot.ts";
import type { PhasedStatus } from "../../../reconciler/phased/status.ts";
import { podsByIndex, readTarget } from "../../../reconciler/phased/target.ts";
import { podObject } from "../builders.ts";
import { data, empty, NOW, rolloutObject, setObject, unreachable } from "./builders.ts";

type Phase = "ready" | "starting" | "broken" | "terminating";
export interface SimulatedPod {
  revision: number;
  phase: Phase;
}

export interface World {
  now: number;
  prometheus: "quiet" | "firing" | "down";
  set: {
    uid: number;
    version: number;
    generation: number;
    readonly ordered: boolean;
    replicas: number;
    partition: number;
    template: number;
    strategy: "RollingUpdate" | "OnDelete";
    owner: string | undefined;
    original: number | undefined;
    pods: Map<number, SimulatedPod>;
    /** As the controller wrote it last. */
    status: { observed: number; current: number; update: number; updated: number; available: number; replicas: number };
  };
  rollout: {
    version: number;
    generation: number;
    skipCheck: boolean;
    paused: boolean;
    finalizer: boolean;
    status: PhasedStatus | undefined;
    finalCheck: boolean;
  };
}

export const THRESHOLD = 2;

export function createWorld({
  replicas,
  ordered,
  finalCheck = false,
}: {
  replicas: number;
  ordered: boolean;
  finalCheck?: boolean;
}): World {
  const pods = new Map(Array.from({ length: replicas }, (_, i): [number, SimulatedPod] => [i, { revision: 0, phase: "ready" }]));
  const status = { observed: 1, current: 0, update: 0, updated: replicas, available: replicas, replicas };
  const set = { uid: 1, version: 1, generation: 1, ordered, replicas, partition: 0, template: 0, strategy: "RollingUpdate" as const };
  return {
    now: NOW,
    prometheus: "quiet",
    set: { ...set, owner: undefined, original: undefined, pods, status },
    rollout: { version: 1, generation: 1, skipCheck: false, paused: false, finalizer: false, status: undefined, finalCheck },
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
  "wipePartition",
  "raisePartition",
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
] as const;
export type Happening = (typeof HAPPENINGS)[number];

/** One change by others; `at` picks a pod. */
export function happen(what: Happening, world: World, at: number): void {
  const { set, rollout } = world;
  const pod = set.pods.get(at % Math.max(1, set.replicas));
  const change = (edit: () => void): void => {
    edit();
    set.version++;
    set.generation++;
  };
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
    scaleUp: () => change(() => void (set.replicas = Math.min(6, set.replicas + 1))),
    scaleDown: () => change(() => void (set.replicas = Math.max(1, set.replicas - 1))),
    wipePartition: () => set.strategy === "RollingUpdate" && change(() => void (set.partition = 0)),
    raisePartition: () => set.strategy === "RollingUpdate" && change(() => void (set.partition += 1)),
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
    recreate: () => recreate(world),
  };
  moves[what]();
}

function recreate({ set }: World): void {
  Object.assign(set, {
    uid: set.uid + 1,
    generation: 1,
    version: set.version + 1,
    partition: 0,
    owner: undefined,
    original: undefined,
    strategy: "RollingUpdate",
    pods: new Map(),
  });
  set.status = { observed: 0, current: set.template, update: set.template, updated: 0, available: 0, replicas: 0 };
}

/** One sync of the StatefulSet controller, in its order: create, scale down, update one pod, write the status. */
function sync({ set }: World): void {
  const { pods, replicas, template, status, partition } = set;
  const isHealthy = (pod: SimulatedPod | undefined): boolean => pod?.phase === "ready";
  const indexes = Array.from({ length: replicas }, (_, index) => index);
  const unhealthy = indexes.filter((index) => !isHealthy(pods.get(index)));
  const missing = unhealthy.filter((index) => !pods.has(index)).filter((index) => !set.ordered || index === unhealthy[0]);
  const count = (): void => {
    const all = [...pods.values()];
    const updated = all.filter(({ revision, phase }) => revision === template && phase !== "terminating").length;
    const available = all.filter(isHealthy).length;
    const isDone = set.strategy === "RollingUpdate" && [updated, available, pods.size].every((number) => number === replicas);
    set.status = {
      observed: set.generation,
      current: isDone ? template : status.current,
      update: template,
      updated,
      available,
      replicas: pods.size,
    };
  };
  for (const index of missing) pods.set(index, { revision: index < partition ? status.current : template, phase: "starting" });
  const surplus = [...pods].find(([index, { phase }]) => index >= replicas && phase !== "terminating");
  if (surplus) surplus[1].phase = "terminating";
  else if (set.strategy === "RollingUpdate" && (!set.ordered || unhealthy.length === 0)) {
    const next = indexes.slice(partition).findLast((index) => pods.get(index)?.revision !== template || !isHealthy(pods.get(index)));
    const pod = next === undefined ? undefined : pods.get(next);
    if (pod && pod.revision !== template) pod.phase = "terminating";
  }
  count();
}

function runKubelets({ set: { pods } }: World): void {
  for (const [index, pod] of pods) {
    if (pod.phase === "terminating") pods.delete(index);
    else if (pod.phase === "starting") pod.phase = "ready";
  }
}

/** Pods that are broken at a revision that is still wanted come up: nobody could roll out otherwise. */
export function heal({ set }: World): void {
  for (const pod of set.pods.values())
    if (pod.phase === "broken" && [set.template, set.status.current].includes(pod.revision)) pod.phase = "ready";
}

/** What a tick would gather. */
export function observe(world: World, answer?: QueryAnswer): PhasedSnapshot {
  const { set, rollout, now } = world;
  const object = setObject({
    replicas: set.replicas,
    partition: set.partition,
    current: `r${set.status.current}`,
    update: `r${set.status.update}`,
    updated: set.status.updated,
    available: set.status.available,
    owner: set.owner,
    strategy: set.strategy,
    policy: set.ordered ? "OrderedReady" : "Parallel",
    generation: set.generation,
    uid: `uid-${set.uid}`,
    annotations: set.original === undefined ? {} : { "sts.plus/original-partition": String(set.original) },
  });
  const status = { ...object.status, replicas: set.status.replicas, observedGeneration: set.status.observed };
  const target = readTarget({ ...object, status });
  const own = readPhasedRollout(
    rolloutObject({
      generation: rollout.generation,
      finalizers: rollout.finalizer ? ["sts.plus/finalizer"] : [],
      spec: { skipCheck: rollout.skipCheck, finalCheck: rollout.finalCheck },
      check: { initialDelaySeconds: 10, periodSeconds: 10, successThreshold: THRESHOLD },
      annotations: { "sts.plus/pause": String(rollout.paused) },
      ...(rollout.status && { status: rollout.status }),
    }),
    "NoData",
  );
  const pods = [...set.pods].map(([index, pod]) => readPod(podOf(index, pod, target.uid)));
  const owner = set.owner === own.name ? own : undefined;
  return { now, rollout: own, target, owner, pods: podsByIndex(target, pods), ...(answer && { answer: { ...answer, at: now } }) };
}

function podOf(index: number, { revision, phase }: SimulatedPod, uid: string): PodObject {
  const traits = { revision: `r${revision}`, ready: phase === "ready" || phase === "terminating", terminating: phase === "terminating" };
  const pod = podObject("db", index, { ...traits, ...(phase === "broken" && { broken: "CrashLoopBackOff", ready: false }) });
  return {
    ...pod,
    metadata: { ...pod.metadata, ownerReferences: [{ apiVersion: "apps/v1", kind: "StatefulSet", name: "db", uid, controller: true }] },
  };
}

export const ask = ({ prometheus }: World): QueryAnswer => ({ quiet: empty, firing: data, down: unreachable })[prometheus];

export interface Versions {
  readonly set: number;
  readonly rollout: number;
}

export const versionsOf = ({ set, rollout }: World): Versions => ({ set: set.version, rollout: rollout.version });

/** Carries out a decision, if what it writes to is as it was read; false for a conflict. */
export function carryOut(decision: PhasedDecision, world: World, read: Versions): boolean {
  const { set, rollout } = world;
  const ofRollout = ["addFinalizer", "dropFinalizer", "report"].includes(decision.action);
  if (ofRollout ? rollout.version !== read.rollout : set.version !== read.set) return false;
  switch (decision.action) {
    case "addFinalizer":
      Object.assign(rollout, { finalizer: true, version: rollout.version + 1 });
      return true;
    case "report":
      Object.assign(rollout, { status: decision.status, version: rollout.version + 1 });
      return true;
    case "claim":
      set.version++;
      if (set.owner === undefined && set.original === undefined) set.original = set.partition;
      set.owner = "guard";
      return true;
    case "setPartition":
    case "releasePod":
      Object.assign(set, { partition: decision.partition, version: set.version + 1, generation: set.generation + 1 });
      return true;
    case "replacePod": {
      const pod = set.pods.get(Number(decision.pod.name.slice("db-".length)));
      if (pod) pod.phase = "terminating";
      return true;
    }
    case "releaseTarget":
    case "dropFinalizer":
    case "check":
      throw new Error(`unexpected ${decision.action}`);
    default:
      return decision satisfies never;
  }
}
