/** Do the pods of the other zones of a group allow a downscale (§4.7d)? The minimum time between downscales is in scaling/min-time.ts. */
import type { Pod } from "../model/pod.ts";
import { isSurplus } from "../model/readiness.ts";
import type { ZoneWithPods } from "../model/zone.ts";

export interface DownscaleRefusal {
  /** Those with `Unknown`: the API server could not say. */
  readonly reason:
    | "DownscaleUnreadable"
    | "DownscalesUnknown"
    | "GroupUnknown"
    | "MinTimeNotElapsed"
    | "NeverStored"
    | "OtherZoneNotReady"
    | "ZonesUnknown";
  /** The explanation after `is not allowed because`, in the original's words. */
  readonly message: string;
}

/** Refuses because of the first other zone that still loses pods, or has outdated or unready ones (§4.7d). The shrinking zone is not checked. */
export function refuseByHealth(others: readonly ZoneWithPods[]): DownscaleRefusal | undefined {
  for (const other of others) {
    const message = describeShrinking(other) ?? describeUnready(other) ?? describeTerminating(other);
    if (message !== undefined) return { reason: "OtherZoneNotReady", message };
  }
  return undefined;
}

/** A downscale lasts until the surplus pods are gone. The status does not show it before the controller has observed the spec. */
function describeShrinking(zone: ZoneWithPods): string | undefined {
  const { name, replicas, observed, pods } = zone;
  const surplus = pods.filter((pod) => isSurplus(pod, zone));
  if (observed && surplus.length === 0) return undefined;
  const unobserved = observed ? "" : ", which the StatefulSet controller has not observed yet";
  const surplusText = surplus.length === 0 ? "" : `${observed ? ", and " : "; "}${describePods(surplus)}`;
  return `statefulset ${name} has ${replicas} replicas${unobserved}${surplusText}`;
}

/** As in a rollout, the larger of spec and status replicas counts: the status leaves out a pod that cannot be made again. */
function describeUnready({ name, replicas, status, pods }: ZoneWithPods): string | undefined {
  const expected = Math.max(replicas, status.replicas);
  const ready = pods.filter((pod) => pod.ready).length;
  if (expected === ready && status.updated === ready) return undefined;
  return `statefulset ${name} has ${expected - status.updated} non-updated replicas and ${expected - ready} non-ready replicas`;
}

function describeTerminating({ name, pods }: ZoneWithPods): string | undefined {
  const terminating = pods.filter((pod) => pod.terminating);
  return terminating.length === 0 ? undefined : `statefulset ${name} waits for pods: ${describePods(terminating)}`;
}

/** The most pods that a message names. */
const MAX_NAMED = 10;

function describePods(pods: readonly Pod[]): string {
  const named = pods.slice(0, MAX_NAMED).map((pod) => pod.name);
  const more = pods.length > MAX_NAMED ? ` and ${pods.length - MAX_NAMED} more` : "";
  const activity = pods.every((pod) => pod.terminating) ? "terminating" : "running";
  return `${named.join(", ")}${more} ${pods.length === 1 ? "is" : "are"} still ${activity}`;
}
