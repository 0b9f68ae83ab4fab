/** Takes one step of scaling; its outcome is a fact of the next snapshot. */
import type { Hold } from "../../model/decision.ts";
import { addFacts, type ScalingSnapshot, type ZoneFacts } from "../snapshot.ts";
import type { ScalingStep, WriteBack } from "../steps.ts";
import { preparePods } from "./prepare-pods.ts";
import { scaleZone } from "./scale-zone.ts";
import type { Scaler } from "./scaler.ts";
import { messageOf } from "../../../infra/errors.ts";
import type { Actor } from "../../../infra/kubernetes/actor.ts";

/** The snapshot of the decision, and its holds. */
interface Decided {
  readonly snapshot: ScalingSnapshot;
  readonly scalingHolds: readonly Hold[];
}

/**
 * After any error that is thrown, the group must be gathered again: `Conflict` and `NotFound` if it has
 * changed since it was read, `LeaseLost`, `Cancelled`, and errors after which a change of replicas may have taken
 * effect.
 */
export async function takeScalingStep(
  step: Exclude<ScalingStep, Hold>,
  { snapshot, scalingHolds }: Decided,
  scaler: Scaler,
): Promise<ScalingSnapshot> {
  const withFacts = (facts: ZoneFacts): ScalingSnapshot =>
    addFacts(snapshot, step.zone, { facts, now: scaler.clock.now() });
  switch (step.action) {
    case "cancelPreparation":
      await scaler.notifier.cancelPreparation(step.zone, step.pods);
      return withFacts({ notified: true });
    case "preparePods":
      return withFacts({
        answers: await preparePods(step, { http: scaler.podHttp, now: scaler.clock.now, signal: scaler.stop }),
      });
    case "scaleZone": {
      const refused = await scaleZone(step, scaler);
      return refused ? withFacts({ refused }) : { ...snapshot, scaled: { step, scalingHolds } };
    }
    case "writeBack":
      return withFacts({ writtenBack: await writeBack(step, scaler) });
    default:
      return step satisfies never;
  }
}

/**
 * Writes the replicas of a zone to the `status.replicas` of its reference (§2.5). A failure causes one log line and no
 * other effect.
 */
async function writeBack(
  { zone, reference: { resource }, name, replicas }: WriteBack,
  { cluster, fence }: Pick<Actor, "cluster" | "fence">,
): Promise<NonNullable<ZoneFacts["writtenBack"]>> {
  const ref = { namespace: zone.namespace, name, subresource: "status" } as const;
  try {
    await cluster.patch(resource, { ...ref, type: "merge", body: { status: { replicas } } }, fence.write());
    return "done";
  } catch (error) {
    return { failure: `${resource.plural}/${name}: ${messageOf(error)}` };
  }
}
