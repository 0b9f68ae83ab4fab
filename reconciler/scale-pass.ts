/** One pass over a group's scaling: what it works with, what it has found out, and its one way to scale a zone. */
import { hasCode } from "../infra/errors.ts";
import type { PodHttp } from "../infra/pod-http.ts";
import { act, type Actor } from "./act.ts";
import { gatherTracker, type References } from "./gather-scaling.ts";
import { gatherGroup } from "./gather.ts";
import { hold, type Hold } from "./model/decision.ts";
import type { Zone } from "./model/zone.ts";
import type { Note } from "./prepare.ts";
import type { ScaleZone, ScalingSnapshot } from "./scaling/leader.ts";
import { othersSteady } from "./scaling/steady.ts";

export interface Scaler extends Actor {
  readonly references: References;
  readonly podHttp: PodHttp;
  readonly clusterDomain: string;
  /** Name of the zone tracker's ConfigMap. */
  readonly zoneTracker: string;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Ends requests to pods. */
  readonly stop: AbortSignal;
}

export interface Pass {
  readonly zones: readonly Zone[];
  readonly scaler: Scaler;
  /** Why zones were not scaled. */
  readonly holds: Hold[];
  /** What goes on beside it, and is over before the pass is. */
  readonly telling: Promise<readonly Note[]>[];
  /** What has been read of the zone tracker, by namespace. */
  readonly tracker: Map<string, ScalingSnapshot["tracked"]>;
}

/** Carries the decision out; false if it had to wait or was refused. */
export async function scale(decision: ScaleZone, { zones, scaler, holds }: Pass): Promise<boolean> {
  const { zone, replicas, message } = decision;
  try {
    if (replicas < zone.replicas && zone.scaling.forced === undefined) {
      const busy = othersSteady(zone, await gatherGroup(scaler.cluster, zones, scaler.freshness));
      if (busy) holds.push(busy);
      if (busy) return false;
    }
    await act(decision, scaler);
    return true;
  } catch (error) {
    if (!hasCode(error, ...REFUSALS)) throw error;
    holds.push(hold("ScaleRefused", `${message}, was refused: ${error.message}`, [zone], `${zone.name} ${replicas} ${error.code}`));
    return false;
  }
}

/** Answers that say that nothing was written: a webhook said no, RBAC did, or the server has too much to do. */
const REFUSALS = ["Forbidden", "Invalid", "Unauthorized", "Throttled"] as const;

/** What decisions look at; with the zone tracker only where it matters. */
export async function snapshotOf({ zones, scaler, tracker, telling }: Pass, withTracker: boolean): Promise<ScalingSnapshot> {
  const namespace = zones[0]?.namespace ?? "";
  if (withTracker && !tracker.has(namespace)) {
    try {
      tracker.set(namespace, await gatherTracker(scaler.cluster, namespace, scaler.zoneTracker));
    } catch (error) {
      tracker.set(namespace, undefined);
      telling.push(Promise.resolve([{ level: "warn", text: `the zone tracker cannot be read: ${messageOf(error)}` }]));
    }
  }
  return { zones, tracked: withTracker ? tracker.get(namespace) : new Map(), now: scaler.now() };
}

/** The words of whatever was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
