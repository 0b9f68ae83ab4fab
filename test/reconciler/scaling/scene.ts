/** Groups to scale, at a fixed time, and what one tick decides about them in a few words. */
import { podObjects, statefulSetObject, traitsOf, type ZoneTraits } from "../../builders/zones.ts";
import { type Facts, scale } from "./adapter.ts";
import { DELAYED, MIRROR } from "./mirror-stage.ts";

export const NOW = Date.UTC(2026, 0, 2, 12);
export const ago = (hours: number): string => new Date(NOW - hours * 3_600_000).toISOString();

export const minTime = (text: string) => ({ labels: { "grafana.com/min-time-between-zones-downscale": text } });
export const LAST = "grafana.com/last-downscale";
export const downscaled = (hours: number) => ({ annotations: { [LAST]: ago(hours) } });

export const mirrorOf = (name: string): Record<string, string> => ({
  ...MIRROR,
  "grafana.com/rollout-mirror-replicas-from-resource-name": name,
});

/** A zone that mirrors the resource `t`, with as many replicas. */
export const mirror = (replicas: number, more: Record<string, string> = {}): ZoneTraits => ({
  replicas,
  annotations: { ...mirrorOf("t"), ...more },
});
/** It lets pods that are to go prepare for an hour. */
export const delayed = (replicas: number, more: Record<string, string> = {}): ZoneTraits =>
  mirror(replicas, { ...DELAYED, ...more });

export const follows = (letter: string, more: Record<string, string> = {}) => ({
  annotations: { "grafana.com/rollout-downscale-leader": letter && `ingester-zone-${letter}`, ...more },
});
export const READY_ONLY = { "grafana.com/rollout-upscale-only-when-leader-ready": "true" };
export const force = (replicas: number) => ({ "grafana.com/rollout-force-replicas": String(replicas) });

/** What else there is; `t` is what the resource `t` wants, and what was written back to it. */
export interface More extends Partial<Omit<Facts, "statefulSets">> {
  readonly t?: readonly [wanted: number, reported: number];
}

/** The zones a, b, c… of the group `ingester`, one for each sketch or set of traits. */
export function factsOf(zones: readonly (ZoneTraits | string)[], { t, ...more }: More = {}): Facts {
  const all = zones.map(traitsOf).map((traits, i) => ({ name: `ingester-zone-${"abcdefgh".charAt(i)}`, ...traits }));
  const pods = more.pods ?? all.flatMap(podObjects);
  return { now: NOW, ...(t && { templates: { t } }), ...more, statefulSets: all.map(statefulSetObject), pods };
}

/** What is done, and the reasons of zones that wait. */
export async function decide(...scene: Parameters<typeof factsOf>): Promise<string> {
  const { done, holds } = await scale(factsOf(...scene));
  return [...done, ...holds.map(({ reason }) => reason)].join(", ");
}

/** The first hold's message, with short names. */
export async function whyNot(...scene: Parameters<typeof factsOf>): Promise<string | undefined> {
  const { holds } = await scale(factsOf(...scene));
  return holds[0]?.message.replaceAll("ingester-", "");
}
