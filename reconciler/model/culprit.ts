/**
 * The pod that a hold waits for, and from when on somebody has to help it.
 *
 *   it can come up by itself                                            never: it may take its time
 *   its containers cannot be made, and no pod has its template yet      a minute after it was created: the template is at fault
 *   its containers cannot be made or end again and again, no node
 *   takes it, or it should be gone and is not                           5 minutes after it was last ready, or should have been gone
 */
import type { Culprit, Hold } from "./decision.ts";
import { isReady, isTerminating, RECOVERY_MS } from "./health.ts";
import { moveToFront } from "./order.ts";
import type { Pod } from "./pod.ts";
import { describeUnavailable, unavailable } from "./readiness.ts";
import type { ZoneWithPods } from "./zone.ts";

/** Milliseconds in which a kubelet has tried an image three times. */
const NEVER_STARTED_MS = 60_000;

/** Restarts after which a pod that is not ready counts as one that does not come up. */
const MANY_RESTARTS = 3;

/** A time after all others. */
const UNKNOWN = Number.MAX_SAFE_INTEGER;

/** Reasons of a container that was never there. */
const NOT_MADE = /Image|^(?:Create|Run)Container/;

/** The part of a hold that names the worst of what these zones wait for. `zones`: all of the group. */
export function waitFor(ill: readonly ZoneWithPods[], zones: readonly ZoneWithPods[]): Pick<Hold, "culprit"> {
  return worstOf(ill.map((zone) => findCulprit(zone, zones)));
}

export function worstOf(culprits: readonly Culprit[]): Pick<Hold, "culprit"> {
  const [worst] = moveToFront(culprits, ({ isBroken }) => isBroken === true).toSorted(
    ({ needsHelpAt: a = UNKNOWN }, { needsHelpAt: b = UNKNOWN }) => a - b,
  );
  return worst ? { culprit: worst } : {};
}

/**
 * The hold of a budget that keeps `pod` of `zone`, with what it counts first: the unavailable pods of other zones,
 * otherwise its own.
 */
export function blameUnavailable(
  held: Hold,
  pod: Pick<Pod, "uid">,
  { zone, zones }: { readonly zone: ZoneWithPods; readonly zones: readonly ZoneWithPods[] },
): Hold {
  if (held.reason !== "BudgetSpent") return held;
  const others = zones.filter((other) => other.uid !== zone.uid && unavailable(other).count > 0);
  const isIll = unavailable(zone).pods.some(({ uid }) => uid !== pod.uid);
  const ill = others.length > 0 ? others : isIll ? [zone] : [];
  if (ill.length === 0) return held;
  return {
    ...held,
    message: [...ill.map(describeUnavailable), held.message].join("; "),
    objects: [...held.objects, ...ill.flatMap((one) => unavailable(one).pods)],
    ...waitFor(ill, zones),
    // Not by the health of pods, which changes while they do not come up.
    dedupKey: held.dedupKey ?? held.message,
  };
}

/** The worst of the zone's unavailable pods; the zone itself if no pod is to blame. */
export function findCulprit(zone: ZoneWithPods, zones: readonly ZoneWithPods[]): Culprit {
  const pods = unavailable(zone).pods.map((pod): Culprit => {
    const needsHelpAt = whenHelpless(pod, zone, zones);
    return {
      kind: "Pod",
      name: pod.name,
      ...(pod.health.fault !== undefined && { isBroken: true }),
      ...(needsHelpAt !== undefined && { needsHelpAt }),
    };
  });
  return worstOf(pods).culprit ?? { kind: "StatefulSet", name: zone.name };
}

function whenHelpless(pod: Pod, zone: ZoneWithPods, zones: readonly ZoneWithPods[]): number | undefined {
  const { since, fault = "" } = pod.health;
  if (since === undefined || !isHelpless(pod)) return undefined;
  const isUntried = NOT_MADE.test(fault) && !zones.some((other) => hasProven(other, zone));
  return since + (isUntried ? NEVER_STARTED_MS : RECOVERY_MS);
}

/** Between two of its ends, a container that ends again and again looks as if it came up. */
const isHelpless = (pod: Pod): boolean =>
  isTerminating(pod) || pod.health.fault !== undefined || pod.restarts >= MANY_RESTARTS;

/** True if a pod of the zone is ready with the images that `zone` is to have. */
const hasProven = ({ pods, images, status }: ZoneWithPods, zone: ZoneWithPods): boolean =>
  images.join() === zone.images.join() && pods.some((pod) => isReady(pod) && pod.revision === status.updateRevision);
