/**
 * The rules for scaling a zone down. They are applied to the last facts that are read before the write, and in
 * simulations.
 */
import type { ScaleZone } from "../model/outcome.ts";
import type { Hold } from "../model/decision.ts";
import type { GroupSnapshot, Zone } from "../model/zone.ts";
import type { ZoneTimes } from "./facts.ts";
import { decideFollower } from "./leader.ts";
import { minTimeOver, timedOrphans } from "./min-time.ts";
import { losesNothing, othersSteady } from "./steady.ts";

/** True if the step takes pods away and nobody forces it: only then the rules below are asked. */
export function isShrinking({ zone, replicas }: Pick<ScaleZone, "zone" | "replicas">): boolean {
  return replicas < zone.replicas && zone.scaling.forcedReplicas === undefined;
}

/** The hold that keeps the zone at its size; "outdated" if its leader wants another number of replicas by now. */
export function decideShrink(
  step: Pick<ScaleZone, "zone" | "replicas">,
  times: ZoneTimes,
  group: GroupSnapshot,
): Hold | "outdated" | undefined {
  const why = whyTooEarly(step, times) ?? minTimeOver(step.zone, { ...times, zones: timedOrphans(group) }, "optional");
  if (why) return why;
  const zone = group.zones.find(({ uid }) => uid === step.zone.uid);
  return zone && losesNothing(zone, step.replicas, times.now) ? undefined : othersSteady(step, group, times.now);
}

function whyTooEarly(
  { zone, replicas }: { readonly zone: Zone; readonly replicas: number },
  times: ZoneTimes,
): Hold | "outdated" | undefined {
  if (zone.scaling.leader === undefined) return minTimeOver(zone, times, "optional");
  const again = decideFollower(zone, times);
  if (again?.action === "hold") return again;
  return again?.replicas === replicas ? undefined : "outdated";
}
