/**
 * Making a zone smaller takes pods away, and so does a rollout: never in two zones at once by our doing. Upstream leaves that to its webhook, which
 * may not be there.
 */
import { hold, type Hold } from "../model/decision.ts";
import { describeUnavailable, isWell } from "../model/readiness.ts";
import type { GroupSnapshot, Zone, ZoneWithPods } from "../model/zone.ts";

/**
 * The hold that keeps `zone` from shrinking while another zone loses pods: by a rollout or by a downscale that is under way.
 * A zone that is merely not ready does not count: a leader's trouble must not keep its followers at their size [2.1.4].
 */
export function othersSteady(zone: Zone, { zones }: GroupSnapshot): Hold | undefined {
  const busy = zones.filter((other) => other.uid !== zone.uid).flatMap((other) => whatIsUnderWay(other) ?? []);
  if (busy.length === 0) return undefined;
  const objects = [zone, ...busy.map(({ other }) => other)];
  const cause = `${zone.name} after ${busy.map(({ other }) => other.name).join(", ")}`;
  return hold("OtherZoneNotReady", `${zone.name} waits to shrink: ${busy.map(({ what }) => what).join("; ")}`, objects, cause);
}

function whatIsUnderWay(other: ZoneWithPods): { readonly other: Zone; readonly what: string } | undefined {
  const { status } = other;
  if (!other.observed) return { other, what: `the StatefulSet controller has not observed the latest spec of ${other.name}` };
  const leaving = other.pods.some((pod) => pod.terminating) || other.pods.length > other.replicas;
  const rolling = status.currentRevision !== status.updateRevision || status.updated < status.replicas;
  if (!leaving && (!rolling || isWell(other))) return undefined;
  if (isWell(other))
    return { other, what: `${other.name} has ${other.pods.length} pods, ${other.pods.length - other.replicas} more than it is to have` };
  return { other, what: describeUnavailable(other) };
}
