/** What a tick reads of the model, and what its writes do to it. */
import type { PodObject } from "../../../infra/kubernetes/resources.ts";
import { type CheckVerdict, judgeAnswer } from "../../../reconciler/checks/check.ts";
import { ANNOTATIONS } from "../../../reconciler/model/annotations.ts";
import { readPod } from "../../../reconciler/model/pod.ts";
import { decidePhased } from "../../../reconciler/phased/decide-phased.ts";
import { readPhasedRollout } from "../../../reconciler/phased/phased-rollout.ts";
import type { PhasedDecision, PhasedSnapshot } from "../../../reconciler/phased/snapshot.ts";
import { podsByIndex, readTarget } from "../../../reconciler/phased/target.ts";
import { data, empty, rolloutObject, unreachable } from "./builders.ts";
import { setOf, THRESHOLD, type World } from "./world.ts";

/** What a tick would gather. */
export function observe(world: World): PhasedSnapshot {
  const { cluster, rollout } = world;
  const now = cluster.now();
  const target = readTarget(cluster.set("db"));
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
  const pods = cluster.podsOf("db").map((pod) => readPod(pod as unknown as PodObject));
  return {
    now,
    rollout: own,
    target,
    owner: target.owner === own.name ? own : undefined,
    pods: podsByIndex(target, pods),
  };
}

/** The decision of a tick, and what it took Prometheus' answer for, if it asked. */
export function decide(world: World): { readonly decision: PhasedDecision; readonly verdict?: CheckVerdict } {
  const snapshot = observe(world);
  const decision = decidePhased(snapshot);
  if (decision.action !== "check") return { decision };
  const answer = { quiet: empty, firing: data, down: unreachable }[world.prometheus];
  const verdict = judgeAnswer(snapshot.rollout.check, answer);
  return { decision: decidePhased({ ...snapshot, answer: { ...answer, at: snapshot.now } }), verdict };
}

/** One decision, carried out. */
export function tick(world: World): PhasedDecision {
  const read = versionsOf(world);
  const { decision } = decide(world);
  carryOut(decision, world, read);
  return decision;
}

export interface Versions {
  readonly set: string;
  readonly rollout: number;
}

export const versionsOf = (world: World): Versions => ({ set: setOf(world).version, rollout: world.rollout.version });

/** Carries out a decision, if what it writes to is as it was read; false for a conflict. */
export function carryOut(decision: PhasedDecision, world: World, read: Versions): boolean {
  const { cluster, rollout } = world;
  const ofRollout = ["addFinalizer", "dropFinalizer", "report"].includes(decision.action);
  if (ofRollout ? rollout.version !== read.rollout : setOf(world).version !== read.set) return false;
  switch (decision.action) {
    case "addFinalizer":
      Object.assign(rollout, { finalizer: true, version: rollout.version + 1 });
      return true;
    case "report":
      Object.assign(rollout, { status: decision.status, version: rollout.version + 1 });
      return true;
    case "claim": {
      const { original } = decision;
      cluster.annotate("db", {
        [ANNOTATIONS.phasedRollout]: "guard",
        ...(original !== undefined && { [ANNOTATIONS.originalPartition]: String(original) }),
      });
      return true;
    }
    case "setPartition":
    case "releasePod": {
      const { updateStrategy } = cluster.set("db").spec;
      const rollingUpdate = { ...updateStrategy?.rollingUpdate, partition: decision.partition };
      cluster.change("db", { updateStrategy: { type: "RollingUpdate", ...updateStrategy, rollingUpdate } });
      return true;
    }
    case "replacePod":
      cluster.remove(decision.pod.name);
      return true;
    case "releaseTarget":
    case "dropFinalizer":
    case "check":
      throw new Error(`unexpected ${decision.action}`);
    default:
      return decision satisfies never;
  }
}
