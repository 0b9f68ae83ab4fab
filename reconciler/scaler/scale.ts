/**
 * Scales one zone of a group at most, before its rollout (§2.0): leaders and followers first, then mirrors, in the order of names.
 * What stands in the way of one zone does not starve the others.
 */
import type { Hold } from "../model/decision.ts";
import type { Zone } from "../model/zone.ts";
import type { Note } from "./prepare.ts";
import { scaleMirror } from "./scale-mirror.ts";
import { scale, snapshotOf, type Pass, type Scaler } from "./scale-pass.ts";
import { decideFollower, wantsDownscale } from "../scaling/leader.ts";
import type { ScaleZone } from "../scaling/snapshot.ts";

export interface ScalingReport {
  /** The zone that was scaled, if one was. */
  readonly change?: ScaleZone;
  /** Why zones were not. */
  readonly holds: readonly Hold[];
  readonly notes: readonly Note[];
}

/**
 * Refusals, and what cannot be read, are holds of the zone that they befall. After anything that it throws the group is to be gathered again: it
 * has changed since it was read, or nobody knows if a change of replicas took effect.
 */
export async function scaleGroup(zones: readonly Zone[], scaler: Scaler): Promise<ScalingReport> {
  const pass: Pass = { zones, scaler, holds: [], notes: [] };
  if (zones.some((zone) => zone.terminating)) return pass;
  const change = (await scaleFollowers(pass)) ?? (await scaleMirrors(pass));
  return { ...(change && { change }), holds: pass.holds, notes: pass.notes };
}

async function scaleFollowers(pass: Pass): Promise<ScaleZone | undefined> {
  if (pass.zones.every(({ scaling }) => scaling.leader === undefined)) return undefined;
  const snapshot = await snapshotOf(pass, wantsDownscale(pass));
  for (const zone of pass.zones) {
    const decision = decideFollower(zone, snapshot);
    if (decision?.action === "hold") pass.holds.push(decision);
    else if (decision && (await scale(decision, pass))) return decision;
  }
  return undefined;
}

async function scaleMirrors(pass: Pass): Promise<ScaleZone | undefined> {
  for (const zone of pass.zones) {
    const { leader, mirror } = zone.scaling;
    const change = mirror && leader === undefined ? await scaleMirror(zone, mirror, pass) : undefined;
    if (change) return change;
  }
  return undefined;
}
