/**
 * Carries out decisions about a PhasedRollout, with writes that take effect only if the judged object has not changed.
 */
import type { Actor } from "../../../infra/kubernetes/context.ts";
import { RolloutError, wroteNothing } from "../../../infra/errors.ts";
import { isSameJson } from "../../../infra/json.ts";
import { phasedRollouts } from "../../../infra/kubernetes/custom-resources.ts";
import { pods, statefulSets } from "../../../infra/kubernetes/resources.ts";
import { writeStatus } from "../../../infra/kubernetes/write-status.ts";
import { ANNOTATIONS } from "../../model/annotations.ts";
import type { Hold } from "../../model/decision.ts";
import type { Pod } from "../../model/pod.ts";
import { FINALIZER, type PhasedRollout } from "../phased-rollout.ts";
import type { PhasedDecision } from "../snapshot.ts";
import { type PhasedStatus, readStatus } from "../status.ts";
import { FIELD_MANAGER, type Target } from "../target.ts";
import type { DisruptionContext } from "../../budget/act/may-disrupt.ts";
import { patchZoneStatus } from "../../rollout/act/take-rollout-step.ts";
import type { GatheredRollout } from "./gather-rollouts.ts";

/** Every decision that writes. */
export type Write = Exclude<PhasedDecision, { readonly action: "check" }>;

/**
 * Carries out the decision. Resolves with a hold if a disruption budget forbids it. Throws `Conflict` if the judged
 * objects have changed, `LeaseLost`, or the error of the API server.
 */
export async function takePhasedStep(
  decision: Write,
  { rollout, target }: GatheredRollout,
  actor: DisruptionContext,
): Promise<Hold | undefined> {
  if (decision.action === "report") return report(rollout, decision.status, actor);
  if (decision.action === "addFinalizer") return writeFinalizers(rollout, [...rollout.finalizers, FINALIZER], actor);
  const others = rollout.finalizers.filter((one) => one !== FINALIZER);
  if (decision.action === "dropFinalizer") return writeFinalizers(rollout, others, actor);
  if (!target) throw new RolloutError("NotFound", `StatefulSet ${rollout.targetRef} is gone`);
  switch (decision.action) {
    case "claim":
      return writeTarget(target, claimed(rollout, decision.original), actor);
    case "releaseTarget":
      return writeTarget(target, released(decision), actor);
    case "setPartition":
    case "releasePod":
      return underBudget(decision.pod, target, {
        actor,
        write: () => writeTarget(target, withPartition(decision.partition), actor),
      });
    case "replacePod":
      return replacePod(target, decision, actor);
    default:
      return decision satisfies never;
  }
}

async function report(rollout: PhasedRollout, status: PhasedStatus, actor: DisruptionContext): Promise<undefined> {
  const change = { kind: rollout.kind, object: rollout, before: rollout.status, after: status };
  const stored = await writeStatus(phasedRollouts, change, actor);
  if (stored && !isSameJson(readStatus(stored.status), status))
    throw new RolloutError(
      "Invalid",
      "the definition phasedrollouts.sts.plus drops fields of the status: replace it by Zonewise's",
    );
}

async function writeFinalizers(
  rollout: PhasedRollout,
  finalizers: readonly string[],
  actor: DisruptionContext,
): Promise<undefined> {
  const { cluster, fence } = actor;
  const { namespace, name, resourceVersion } = rollout;
  const body = { metadata: { resourceVersion, finalizers } };
  await cluster.patch(phasedRollouts, { namespace, name, type: "merge", body }, fence.write());
}

interface Changes {
  readonly annotations?: Readonly<Record<string, string | null>>;
  readonly spec?: { readonly updateStrategy: { readonly rollingUpdate: { readonly partition: number } } };
}

async function writeTarget(target: Target, changes: Changes, { cluster, fence }: Actor): Promise<undefined> {
  const { namespace, name, resourceVersion } = target;
  const { annotations, spec } = changes;
  const body = { metadata: { resourceVersion, ...(annotations && { annotations }) }, ...(spec && { spec }) };
  const change = { namespace, name, type: "merge", body, fieldManager: FIELD_MANAGER } as const;
  await cluster.patch(statefulSets, change, fence.write());
}

function withPartition(partition: number): Changes {
  return { spec: { updateStrategy: { rollingUpdate: { partition } } } };
}

function claimed(rollout: PhasedRollout, original: number | undefined): Changes {
  const kept = original === undefined ? {} : { [ANNOTATIONS.originalPartition]: String(original) };
  return { annotations: { [ANNOTATIONS.phasedRollout]: rollout.name, ...kept } };
}

/** A StatefulSet that is frozen keeps its original partition for the next owner. */
function released({ partition, frozen }: Extract<Write, { action: "releaseTarget" }>): Changes {
  return {
    annotations: { [ANNOTATIONS.phasedRollout]: null, ...(!frozen && { [ANNOTATIONS.originalPartition]: null }) },
    ...(partition !== undefined && withPartition(partition)),
  };
}

/** Deletes the judged pod, if neither it nor its StatefulSet has changed since. */
function replacePod(
  target: Target,
  { pod, asksBudget }: Extract<Write, { action: "replacePod" }>,
  actor: DisruptionContext,
): Promise<Hold | undefined> {
  const write = async (): Promise<void> => {
    await patchZoneStatus(target, actor);
    const { namespace, name, uid, resourceVersion } = pod;
    await actor.cluster.remove(pods, { namespace, name, preconditions: { uid, resourceVersion } }, actor.fence.write());
  };
  return underBudget(asksBudget ? pod : undefined, target, { actor, write });
}

/**
 * Asks the disruption budget of the pod first, and reserves the pod; without a pod, no budget. Rejects with the error of
 * the write; a reservation is released if nothing was written.
 */
async function underBudget(
  pod: Pod | undefined,
  target: Target,
  { actor, write }: { readonly actor: DisruptionContext; readonly write: () => Promise<void> },
): Promise<Hold | undefined> {
  const grant = pod && (await actor.mayDisrupt(pod, target, actor.fence.write()));
  if (grant?.action === "hold") return grant;
  try {
    await write();
    return undefined;
  } catch (error) {
    // After any other error the pod may be released, and its reservation must remain.
    if (wroteNothing(error)) await grant?.release(actor.fence.write());
    throw error;
  }
}
