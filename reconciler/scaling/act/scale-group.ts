/**
 * Scales one zone of a group at most, before its rollout (§2.0): gather -> decideScaling -> step, until a zone is
 * scaled or only holds are left.
 */
import type { LogNote, ScaleZone } from "../../model/outcome.ts";
import type { Hold } from "../../model/decision.ts";
import type { Zone } from "../../model/zone.ts";
import { decideScaling } from "../decide-scaling.ts";
import {
  addFacts,
  type PodAnswers,
  type PreparePods,
  type ScalingSnapshot,
  type ScalingStep,
  type WriteBack,
  type ZoneFacts,
} from "../snapshot.ts";
import { gatherReference, gatherScaling, type Scaler } from "./gather-scaling.ts";
import { scaleZone } from "./scale-zone.ts";
import { messageOf, RolloutError } from "../../../infra/errors.ts";
import type { Actor } from "../../../infra/kubernetes/context.ts";
import { callPods } from "../../../infra/call-pods.ts";
import { cancelled } from "../../../infra/deadline.ts";
import { describePodFailure } from "../../../infra/pod-http.ts";
import { foldAges, readPreparedAt, type Endpoint, type Endpoints } from "../delayed.ts";

interface ScalingReport {
  /** How the zone was scaled, if one was. */
  readonly change?: ScaleZone;
  /** Why zones were not scaled. */
  readonly scalingHolds: readonly Hold[];
  readonly notes: readonly LogNote[];
}

/**
 * A refusal or an unreadable fact becomes a hold of its zone. After any error that is thrown, the group must be
 * gathered again: it has changed since it was read, or a change of replicas may have taken effect.
 */
export async function scaleGroup(zones: readonly Zone[], scaler: Scaler): Promise<ScalingReport> {
  let snapshot = await gatherScaling(zones, scaler);
  for (;;) {
    const { next, scalingHolds, unread } = decideScaling(snapshot);
    if (unread) snapshot = await gatherReference(unread, snapshot, scaler);
    else if (next && next.action !== "hold") snapshot = await takeScalingStep(next, { snapshot, scalingHolds }, scaler);
    else return { ...(snapshot.scaled && { change: snapshot.scaled.step }), scalingHolds, notes: notesOf(snapshot) };
  }
}

function notesOf({ zones, facts, untracked }: ScalingSnapshot): LogNote[] {
  const texts = zones.flatMap((zone) => {
    const { writtenBack } = facts.get(zone.uid) ?? {};
    return typeof writtenBack === "object"
      ? [`${zone.name}: its replicas could not be written back to ${writtenBack.failure}`]
      : [];
  });
  const times = untracked === undefined ? [] : [`when zones were last scaled down cannot be read: ${untracked}`];
  return [...times, ...texts].map((text) => ({ level: "warn", text }));
}

interface Decided {
  readonly snapshot: ScalingSnapshot;
  readonly scalingHolds: readonly Hold[];
}

/**
 * After any error that is thrown, the group must be gathered again: `Conflict` and `NotFound` if it has
 * changed since it was read, `LeaseLost`, `Cancelled`, and errors after which a change of replicas may have taken
 * effect.
 */
async function takeScalingStep(
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
      return withFacts({ answers: await preparePods(step, scaler) });
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

/**
 * Sends a POST to every pod that is to leave. Resolves with the last pod whose delay is not over, or the error of the
 * first failure, which cancels the other requests. Throws `Cancelled` once `stop` fires; no further pod is called
 * then.
 */
async function preparePods(
  { zone, pods, delay }: PreparePods,
  { podHttp: http, clock, stop: signal }: Pick<Scaler, "podHttp" | "clock" | "stop">,
): Promise<PodAnswers> {
  const ages = foldAges(delay);
  let failure: string | undefined;
  await callPods({
    http,
    method: "POST",
    namespace: zone.namespace,
    targets: numbered(pods),
    signal,
    stopAtFailure: true,
    onAnswer({ place }, { status, body }) {
      const at = status >= 200 && status < 300 ? readPreparedAt(body) : undefined;
      // Without the body: it may contain a secret, and holds become Events.
      if (at === undefined)
        throw new RolloutError("Invalid", `it answered ${status}, and the answer is not {"timestamp": <Unix seconds>}`);
      ages.add(place, at, clock.now());
    },
    onFailure: ({ url }, error) => void (failure = describePodFailure(url, error)),
  });
  if (signal.aborted) throw cancelled(signal);
  return failure === undefined ? { youngest: ages.youngest() } : { failure };
}

function* numbered(pods: Endpoints): Generator<Endpoint & { readonly place: number }> {
  let place = 0;
  for (const pod of pods) yield { ...pod, place: place++ };
}
