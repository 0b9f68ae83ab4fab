/**
 * Scales one zone of a group at most, before its rollout [2.0]: leaders and followers first, then mirrors, in the order of names.
 * What stands in the way of one zone does not starve the others.
 */
import { hasCode } from "../infra/errors.ts";
import type { PodHttp } from "../infra/pod-http.ts";
import { act, tellReference, type Actor } from "./act.ts";
import { gatherTracker, type Reference, type References } from "./gather-scaling.ts";
import { hold, type Hold } from "./model/decision.ts";
import type { Mirror } from "./model/scaling.ts";
import type { Zone } from "./model/zone.ts";
import { prepareLeaving, tellStaying, type Note } from "./prepare.ts";
import { planPreparation, readDelay, shrinkTo, type Delay } from "./scaling/delayed.ts";
import { decideFollower, scaleZone, wantsDownscale, type ScaleDecision, type ScaleZone, type ScalingSnapshot } from "./scaling/leader.ts";
import { minTimeOver } from "./scaling/min-time.ts";
import { mirroredReplicas, writeBack } from "./scaling/mirror.ts";

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

export interface ScalingReport {
  /** The zone that was scaled, if one was. */
  readonly change?: ScaleZone;
  /** Why zones were not. */
  readonly holds: readonly Hold[];
  /** Resolves once the pods that stay have been told so. */
  readonly notes: Promise<readonly Note[]>;
}

/**
 * Refusals, and what cannot be read, are holds of the zone that they befall. Throws `Conflict` and `NotFound` if a zone has changed since it was
 * read, `LeaseLost`, `Cancelled`, and whatever leaves open if a write took effect.
 */
export async function scaleGroup(zones: readonly Zone[], scaler: Scaler): Promise<ScalingReport> {
  const telling: Promise<readonly Note[]>[] = [];
  const pass: Pass = { zones, scaler, holds: [], telling, tracker: new Map() };
  try {
    const change = (await scaleFollowers(pass)) ?? (await scaleMirrors(pass));
    return { ...(change && { change }), holds: pass.holds, notes: Promise.all(telling).then((notes) => notes.flat()) };
  } catch (error) {
    await Promise.all(telling);
    throw error;
  }
}

interface Pass {
  readonly zones: readonly Zone[];
  readonly scaler: Scaler;
  readonly holds: Hold[];
  readonly telling: Promise<readonly Note[]>[];
  /** What has been read of the zone tracker, by namespace. */
  readonly tracker: Map<string, ScalingSnapshot["tracked"]>;
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

/** One mirroring zone [2.4.4, 2.4.5]. Its reference is told of the replicas that it has then, also while it waits. */
async function scaleMirror(zone: Zone, mirror: Mirror, pass: Pass): Promise<ScaleZone | undefined> {
  const { podHttp, clusterDomain, stop } = pass.scaler;
  const reference = await readReference(zone, mirror, pass);
  if (!reference) return undefined;
  const wanted = mirroredReplicas(zone, reference.scale);
  const delay = readDelay(zone);
  if (delay && !isHold(delay)) {
    pass.telling.push(tellStaying(podHttp, zone, planPreparation(zone, wanted, delay, clusterDomain).stay, stop));
  }
  const decision = wanted === zone.replicas ? undefined : await decideMirror(zone, mirror, wanted, delay, pass);
  if (decision?.action === "hold") pass.holds.push(decision);
  const change = decision?.action === "scaleZone" ? decision : undefined;
  if (change && !(await scale(change, pass))) return undefined;
  const replicas = writeBack(zone, reference.scale, change?.replicas ?? zone.replicas);
  if (replicas !== undefined)
    pass.telling.push(Promise.resolve(await tellReference(pass.scaler, zone, reference.resource, mirror.name, replicas)));
  return change;
}

/** As much of what the reference wants as the pods' delays and the time between zones allow; undefined if it wants something else by now. */
async function decideMirror(
  zone: Zone,
  mirror: Mirror,
  wanted: number,
  delay: Delay | Hold | undefined,
  pass: Pass,
): Promise<ScaleDecision | undefined> {
  const { podHttp, clusterDomain, stop, now } = pass.scaler;
  const why = zone.scaling.forced === undefined ? `mirroring ${mirror.kind}/${mirror.name}` : "forced";
  if (delay && isHold(delay)) return delay;
  let to = wanted;
  if (delay && wanted < zone.replicas) {
    const preparedAt = await prepareLeaving(podHttp, zone, planPreparation(zone, wanted, delay, clusterDomain).leave, stop);
    const allowed = isHold(preparedAt) ? preparedAt : shrinkTo(zone, preparedAt, delay, now());
    if (typeof allowed !== "number") return allowed;
    // The pods took their time to answer.
    const again = await readReference(zone, mirror, pass);
    if (!again || mirroredReplicas(zone, again.scale) !== wanted) return undefined;
    to = allowed;
  }
  const timed = to < zone.replicas && zone.scaling.forced === undefined;
  const snapshot = await snapshotOf(pass, timed && zone.scaling.minTime !== undefined);
  return (timed ? minTimeOver(zone, snapshot, "optional") : undefined) ?? scaleZone(zone, to, why, snapshot);
}

async function readReference(zone: Zone, mirror: Mirror, { scaler, holds }: Pass): Promise<Reference | undefined> {
  try {
    return await scaler.references.read(zone.namespace, mirror);
  } catch (error) {
    const message = `${zone.name} cannot mirror ${mirror.kind}/${mirror.name}: ${messageOf(error)}`;
    holds.push(hold("ReferenceUnreadable", message, [zone], `${zone.name} ${mirror.kind}/${mirror.name}`));
    return undefined;
  }
}

/** Carries the decision out; false if it was refused. */
async function scale(decision: ScaleZone, { scaler, holds }: Pass): Promise<boolean> {
  try {
    await act(decision, scaler);
    return true;
  } catch (error) {
    if (!hasCode(error, ...REFUSALS)) throw error;
    const { zone, message } = decision;
    holds.push(
      hold("ScaleRefused", `${message}, was refused: ${error.message}`, [zone], `${zone.name} ${decision.replicas} ${error.code}`),
    );
    return false;
  }
}

/** Answers that say that nothing was written: a webhook said no, RBAC did, or the server has too much to do. */
const REFUSALS = ["Forbidden", "Invalid", "Unauthorized", "Throttled"] as const;

async function snapshotOf({ zones, scaler, tracker, telling }: Pass, withTracker: boolean): Promise<ScalingSnapshot> {
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

function isHold(value: object): value is Hold {
  return "action" in value && value.action === "hold";
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
