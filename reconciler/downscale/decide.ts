/** May a zone be scaled down now, as far as the pods of the other zones of its group are concerned (§4.7d)? Their times: scaling/min-time.ts. */
import type { Pod } from "../model/pod.ts";
import type { ZoneWithPods } from "../model/zone.ts";

export interface Refusal {
  readonly reason: "DownscaleUnreadable" | "MinTimeNotElapsed" | "NeverStored" | "OtherZoneNotReady";
  readonly message: string;
}

/** The first zone that still loses pods, or has some that are outdated or not ready; the zone that shrinks is not looked at (§4.7d). */
export function refuseByHealth(others: readonly ZoneWithPods[]): Refusal | undefined {
  for (const other of others) {
    const message = describeShrinking(other) ?? describeUnready(other) ?? describeTerminating(other);
    if (message !== undefined) return { reason: "OtherZoneNotReady", message };
  }
  return undefined;
}

/** Its own downscale goes on until its surplus pods are gone; the status says nothing of it before the controller has observed it. */
function describeShrinking({ name, replicas, firstOrdinal, observed, pods }: ZoneWithPods): string | undefined {
  const surplus = pods.filter((pod) => {
    const place = ordinalOf(pod) - firstOrdinal;
    return place < 0 || place >= replicas;
  });
  if (observed && surplus.length === 0) return undefined;
  const unseen = observed ? "" : ", which the StatefulSet controller has not observed yet";
  const still = surplus.length === 0 ? "" : `${observed ? ", and " : "; "}${describeStill(surplus)}`;
  return `statefulset ${name} has ${replicas} replicas${unseen}${still}`;
}

function describeUnready({ name, status, pods }: ZoneWithPods): string | undefined {
  const ready = pods.filter((pod) => pod.ready).length;
  if (status.replicas === ready && status.updated === ready) return undefined;
  return `statefulset ${name} has ${status.replicas - status.updated} non-updated replicas and ${status.replicas - ready} non-ready replicas`;
}

function describeTerminating({ name, pods }: ZoneWithPods): string | undefined {
  const terminating = pods.filter((pod) => pod.terminating);
  return terminating.length === 0 ? undefined : `statefulset ${name} waits for pods: ${describeStill(terminating)}`;
}

const ordinalOf = ({ name }: Pod): number => Number(name.slice(name.lastIndexOf("-") + 1));

/** Pods that a message names. */
const MOST_NAMED = 10;

function describeStill(pods: readonly Pod[]): string {
  const named = pods.slice(0, MOST_NAMED).map((pod) => pod.name);
  const more = pods.length > MOST_NAMED ? ` and ${pods.length - MOST_NAMED} more` : "";
  const doing = pods.every((pod) => pod.terminating) ? "terminating" : "running";
  return `${named.join(", ")}${more} ${pods.length === 1 ? "is" : "are"} still ${doing}`;
}
