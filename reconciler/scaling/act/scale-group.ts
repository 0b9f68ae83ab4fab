/**
 * Scales one zone of a group at most, before its rollout (§2.0): gather -> decideScaling -> step, until a zone is
 * scaled or only holds are left.
 */
import type { LogNote, ScaleZone } from "../../model/outcome.ts";
import type { Hold } from "../../model/decision.ts";
import type { Zone } from "../../model/zone.ts";
import { decideScaling } from "../decide-scaling.ts";
import type { ScalingSnapshot } from "../snapshot.ts";
import { gatherReference, gatherScaling } from "./gather-scaling.ts";
import type { Context } from "../../../infra/kubernetes/context.ts";
import type { Scaler, ScalingTools } from "./scaler.ts";
import { takeScalingStep } from "./take-scaling-step.ts";

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
export async function scaleGroup(zones: readonly Zone[], given: Context & ScalingTools): Promise<ScalingReport> {
  const readings: Scaler["lastRead"]["readings"] = new Map();
  const scaler: Scaler = { ...given, lastRead: { readings } };
  let snapshot = await gatherScaling(zones, scaler);
  for (;;) {
    const { next, scalingHolds, unread } = decideScaling(snapshot);
    if (unread) snapshot = await gatherReference(unread, snapshot, scaler);
    else if (next && next.action !== "hold") {
      // This step only begins calls; any other may take long, or change a reference.
      if (next.action !== "cancelPreparation") readings.clear();
      snapshot = await takeScalingStep(next, { snapshot, scalingHolds }, scaler);
    } else return { ...(snapshot.scaled && { change: snapshot.scaled.step }), scalingHolds, notes: notesOf(snapshot) };
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
