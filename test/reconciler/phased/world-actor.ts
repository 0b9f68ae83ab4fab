/** What a tick reads of the model, and what its writes do to it. */
import type { PodObject } from "../../../infra/kubernetes/resources.ts";
import type { QueryAnswer } from "../../../infra/prometheus/answer.ts";
import { readPod } from "../../../reconciler/model/pod.ts";
import { readPhasedRollout } from "../../../reconciler/phased/phased-rollout.ts";
import type { PhasedDecision, PhasedSnapshot } from "../../../reconciler/phased/snapshot.ts";
import { podsByIndex, readTarget } from "../../../reconciler/phased/target.ts";
import { podObject } from "../builders.ts";
import { data, empty, rolloutObject, setObject, unreachable } from "./builders.ts";
import { THRESHOLD } from "./world.ts";
import type { SimulatedPod, World } from "./world-state.ts";

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
  return {
    now,
    rollout: own,
    target,
    owner,
    pods: podsByIndex(target, pods),
    ...(answer && { answer: { ...answer, at: now } }),
  };
}

function podOf(index: number, { revision, phase }: SimulatedPod, uid: string): PodObject {
  const traits = {
    revision: `r${revision}`,
    ready: phase === "ready" || phase === "terminating",
    terminating: phase === "terminating",
  };
  const pod = podObject("db", index, {
    ...traits,
    ...(phase === "broken" && { broken: "CrashLoopBackOff", ready: false }),
  });
  return {
    ...pod,
    metadata: {
      ...pod.metadata,
      ownerReferences: [{ apiVersion: "apps/v1", kind: "StatefulSet", name: "db", uid, controller: true }],
    },
  };
}

export const ask = ({ prometheus }: World): QueryAnswer =>
  ({ quiet: empty, firing: data, down: unreachable })[prometheus];

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
      set.original = decision.original ?? set.original;
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
