/** Scales a zone that mirrors a resource (§2.4): asks the resource and the pods, decides, and tells the resource what became of it. */
import { messageOf } from "../../infra/errors.ts";
import { tellReference } from "../act.ts";
import type { Reference } from "./gather-scaling.ts";
import { hold, type Hold } from "../model/decision.ts";
import type { Mirror } from "../model/scaling.ts";
import type { Zone } from "../model/zone.ts";
import { prepareLeaving } from "./prepare.ts";
import { scale, type Pass } from "./scale-pass.ts";
import { planPreparation, readDelay, shrinkTo, type Delay } from "../scaling/delayed.ts";
import { scaleZone } from "../scaling/leader.ts";
import type { ScaleDecision, ScaleZone } from "../scaling/snapshot.ts";
import { mirroredReplicas, writeBack } from "../scaling/mirror.ts";

/** One mirroring zone (§2.4.4, §2.4.5); resolves with the change, if there was one. Its reference is told of the replicas that it has then, also while it waits. */
export async function scaleMirror(zone: Zone, mirror: Mirror, pass: Pass): Promise<ScaleZone | undefined> {
  const { teller, clusterDomain } = pass.scaler;
  const reference = await readReference(zone, mirror, pass);
  if (!reference) return undefined;
  const wanted = mirroredReplicas(zone, reference.scale);
  const delay = readDelay(zone);
  if (delay && !isHold(delay)) await teller.stay(zone, planPreparation(zone, wanted, delay, clusterDomain).stay);
  const decision = wanted === zone.replicas ? undefined : await decideMirror(zone, mirror, wanted, delay, pass);
  if (decision?.action === "hold") pass.holds.push(decision);
  const change = decision?.action === "scaleZone" ? decision : undefined;
  if (change && !(await scale(change, pass))) return undefined;
  const replicas = writeBack(zone, reference.scale, change?.replicas ?? zone.replicas);
  if (replicas !== undefined) pass.notes.push(...(await tellReference(pass.scaler, zone, reference.resource, mirror.name, replicas)));
  return change;
}

/** As much of what the reference wants as the pods' delays allow; undefined if it wants something else by now. */
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
    const { leave } = planPreparation(zone, wanted, delay, clusterDomain);
    const prepared = await prepareLeaving(podHttp, zone, leave, delay, { now, signal: stop });
    const allowed = isHold(prepared) ? prepared : shrinkTo(zone, leave.count, prepared.young, delay, now());
    if (typeof allowed !== "number") return allowed;
    // The pods took their time to answer.
    const again = await readReference(zone, mirror, pass);
    if (!again || mirroredReplicas(zone, again.scale) !== wanted) return undefined;
    to = allowed;
  }
  return scaleZone(zone, to, why, { zones: pass.zones, now: now() });
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

function isHold(value: object): value is Hold {
  return "action" in value && value.action === "hold";
}
