/** Snapshots of a group's scaling, and their decisions in a few words. */
import type { Resource } from "../../../infra/kubernetes/resources.ts";
import { decideScaling, type ScalingDecision } from "../../../reconciler/scaling/decide-scaling.ts";
import type { Reference } from "../../../reconciler/scaling/snapshot.ts";
import type { ScalingSnapshot, ZoneFacts } from "../../../reconciler/scaling/snapshot.ts";
import type { ZoneTraits } from "../builders.ts";
import { snapshot } from "./snapshots.ts";

export const TEMPLATES: Resource = { group: "rollout-operator.grafana.com", version: "v1", plural: "replicatemplates" };

export const reference = (wantedReplicas: number, reportedReplicas: number): Reference => ({
  resource: TEMPLATES,
  wantedReplicas,
  reportedReplicas,
});

/** `facts` of the zones a, b, c… in order. */
export function sceneOf(zones: readonly ZoneTraits[], facts: readonly ZoneFacts[] = []): ScalingSnapshot {
  const base = snapshot(zones);
  const known = base.zones.flatMap((zone, i): [string, ZoneFacts][] => (facts[i] ? [[zone.uid, facts[i]]] : []));
  return { ...base, facts: new Map(known), clusterDomain: "cluster.local." };
}

/**
 * The next step, and the reasons of waiting zones: `prepare a-3 a-4`, `scale a to 3`, `write back 3 of a`, `read a`,
 * `wait`, `nothing`.
 */
export function decide(scene: ScalingSnapshot): readonly [next: string, ...reasons: string[]] {
  const decision = decideScaling(scene);
  return [show(decision), ...decision.scalingHolds.map(({ reason }) => reason)];
}

function show({ next, unread }: ScalingDecision): string {
  const letter = (name: string): string => name.replace("ingester-zone-", "");
  if (unread) return `read ${letter(unread.name)}`;
  switch (next?.action) {
    case undefined:
      return "nothing";
    case "hold":
      return "wait";
    case "cancelPreparation":
      return ["keep", ...Array.from(next.pods, ({ pod }) => letter(pod))].join(" ");
    case "preparePods":
      return ["prepare", ...Array.from(next.pods, ({ pod }) => letter(pod))].join(" ");
    case "scaleZone":
      return `scale ${letter(next.zone.name)} to ${next.replicas}`;
    case "writeBack":
      return `write back ${next.replicas} of ${letter(next.zone.name)}`;
    default:
      return next satisfies never;
  }
}
