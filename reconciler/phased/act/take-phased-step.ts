/**
 * Carries out decisions about a PhasedRollout, with writes that take effect only if the judged object has not changed.
 */
import type { Actor } from "../../../infra/kubernetes/context.ts";
import { absent, RolloutError, wroteNothing } from "../../../infra/errors.ts";
import { isSameJson } from "../../../infra/json.ts";
import { phasedRollouts } from "../../../infra/kubernetes/custom-resources.ts";
import { pods, type StatefulSet, statefulSets } from "../../../infra/kubernetes/resources.ts";
import { writeStatus } from "../../../infra/kubernetes/write-status.ts";
import { ANNOTATIONS } from "../../model/annotations.ts";
import type { Hold } from "../../model/decision.ts";
import type { Pod } from "../../model/pod.ts";
import { FINALIZER, readPhasedRollout, type PhasedRollout } from "../phased-rollout.ts";
import type { PhasedDecision } from "../snapshot.ts";
import { type PhasedStatus, readStatus } from "../status.ts";
import { FIELD_MANAGER, readTarget, type Target } from "../target.ts";
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
      return claim(target, { ...decision, rollout }, actor);
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

/** Throws `Invalid` if the write was accepted and left the StatefulSet as it was, or `Conflict` as every write. */
async function writeTarget(target: Target, changes: Changes, { cluster, fence }: Actor): Promise<undefined> {
  const { namespace, name, resourceVersion } = target;
  const { annotations, spec } = changes;
  const body = { metadata: { resourceVersion, ...(annotations && { annotations }) }, ...(spec && { spec }) };
  const stored = await cluster.change<StatefulSet>(
    statefulSets,
    { namespace, name, type: "merge", body, fieldManager: FIELD_MANAGER },
    fence.write(),
  );
  confirmStored(target, changes, readTarget(stored));
}

/** A webhook or a policy may pin what we write: without this, each decision would lead to the same write. */
function confirmStored(before: Target, { annotations, spec }: Changes, { name, owner, partition }: Target): void {
  const sentOwner = annotations?.[ANNOTATIONS.phasedRollout];
  if (sentOwner !== undefined && owner !== (sentOwner ?? undefined))
    throw new RolloutError(
      "Invalid",
      `it was accepted, but ${name} is claimed by ${owner ?? "nobody"}: something pins its annotations`,
    );
  const sent = spec?.updateStrategy.rollingUpdate.partition;
  // A partition below the earlier one may have released pods: the next decision judges it.
  if (sent === undefined || sent === partition || partition < before.partition) return;
  throw new RolloutError(
    "Invalid",
    `it was accepted, but ${name} has partition ${partition} instead of ${sent}: something pins it`,
  );
}

function withPartition(partition: number): Changes {
  return { spec: { updateStrategy: { rollingUpdate: { partition } } } };
}

type Claim = Extract<Write, { action: "claim" }> & { readonly rollout: PhasedRollout };

async function claim(target: Target, { rollout, from, original }: Claim, actor: DisruptionContext): Promise<undefined> {
  if (from !== undefined) await confirmGone({ namespace: target.namespace, name: from }, target, actor);
  const kept = original === undefined ? {} : { [ANNOTATIONS.originalPartition]: String(original) };
  await writeTarget(target, { annotations: { [ANNOTATIONS.phasedRollout]: rollout.name, ...kept } }, actor);
}

/** The lists may be of different moments. Throws `Conflict` if the earlier owner exists after all. */
async function confirmGone(
  place: { readonly namespace: string; readonly name: string },
  target: Target,
  actor: DisruptionContext,
): Promise<void> {
  const found = await actor.cluster.get(phasedRollouts, place, actor.fence.write()).catch(absent);
  if (found && readPhasedRollout(found, "NoData").targetRef === target.name)
    throw new RolloutError("Conflict", `PhasedRollout ${place.name} manages ${target.name}`);
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
