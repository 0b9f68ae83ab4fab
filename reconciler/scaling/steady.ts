/**
 * Making a zone smaller takes pods away, and so does a rollout: never in two zones at once by our doing. Upstream leaves that to its webhook, which
 * may not be there.
 */
import { hold, type Hold } from "../model/decision.ts";
import { describeUnavailable, describeUnsteady, isSteady, isHealthy, unavailable } from "../model/readiness.ts";
import type { GroupSnapshot, Zone, ZoneWithPods } from "../model/zone.ts";

/**
 * The hold that keeps `zone` from shrinking while another zone loses pods, by a rollout, a revert or a downscale that is under way. The pods of
 * the other zone decide, as after a revert its revisions are equal:
 *
 *   a pod is terminating, missing, or one more than it is to have    it is on its way: wait
 *   a pod has not been Ready since it was created                    it may be one of ours that has yet to come back: wait
 *   a pod has been Ready, and is not any more                        wait if the zone rolls out, otherwise not
 *
 * The last line is a leader's own trouble, which must not keep its followers at their size (§2.1.4), however often its containers restart. A pod
 * that can never come up again does keep them: it cannot be distinguished from one of ours. A zone with `grafana.com/rollout-force-replicas` skips
 * this check.
 */
export function othersSteady(zone: Zone, { zones }: GroupSnapshot): Hold | undefined {
  const busy = zones.filter((other) => other.uid !== zone.uid).flatMap((other) => whatIsUnderWay(other) ?? []);
  if (busy.length === 0) return undefined;
  const objects = [zone, ...busy.map(({ other }) => other)];
  const dedupKey = `${zone.name} after ${busy.map(({ other }) => other.name).join(", ")}`;
  const message = `${zone.name} waits to shrink: ${busy.map(({ what }) => what).join("; ")}`;
  return { ...hold("OtherZoneNotReady", message, objects), dedupKey };
}

function whatIsUnderWay(other: ZoneWithPods): { readonly other: Zone; readonly what: string } | undefined {
  const { status, pods, replicas } = other;
  if (!other.observed) return { other, what: `the StatefulSet controller has not observed the latest spec of ${other.name}` };
  if (isHealthy(other)) return isSteady(other) ? undefined : { other, what: describeUnsteady(other) };
  const moving = unavailable(other).missing > 0 || pods.length > replicas || pods.some((pod) => pod.terminating || !pod.hasBeenReady);
  const rolling = status.currentRevision !== status.updateRevision || status.updated < status.replicas;
  return moving || rolling ? { other, what: describeUnavailable(other) } : undefined;
}
