/** Zones that scale each as it is set, their reference and their pods; it notes what must not become of them. */
import assert from "node:assert/strict";
import type { Cluster, Query, Ref } from "../../../infra/cluster.ts";
import { RolloutError } from "../../../infra/errors.ts";
import type { PodHttp } from "../../../infra/pod-http.ts";
import type { StatefulSet } from "../../../infra/resources.ts";
import { podObjects, statefulSetObject } from "../builders.ts";
import { MIRROR } from "./mirror-stage.ts";

const HOUR = 3_600_000;
const MIN_TIME = 12 * HOUR;
const DELAY = 1 * HOUR;

interface SimulatedZone {
  readonly name: string;
  readonly annotations: Record<string, string>;
  replicas: number;
  version: number;
  /** When each pod was prepared, by ordinal. */
  readonly prepared: Map<number, number>;
  shrunkAt?: number;
  /** Pods that are on their way out, at the end of the zone. */
  ending: number;
}

const NAMES = ["a", "b", "c"].map((letter) => `ingester-zone-${letter}`);
export const SETTINGS = [
  {},
  { "grafana.com/rollout-downscale-leader": "ingester-zone-a" },
  { "grafana.com/rollout-downscale-leader": "ingester-zone-b" },
  MIRROR,
  { ...MIRROR, "grafana.com/rollout-delayed-downscale": "1h", "grafana.com/rollout-prepare-delayed-downscale-url": "http://pod/prepare" },
] as const;

/** The process died. */
export class Killed extends Error {}

export function createWorld(settings: readonly number[], sizes: readonly number[]) {
  const violations: string[] = [];
  const zones = NAMES.map((name, i): SimulatedZone => ({
    name,
    annotations: { ...SETTINGS[settings[i] ?? 0] },
    replicas: sizes[i] ?? 1,
    version: 1,
    prepared: new Map(),
    ending: 0,
  }));
  const world = { zones, violations, reference: 3, now: 100 * HOUR, podMood: 0, callsToLive: Infinity };
  const zoneNamed = (name: string): SimulatedZone => zones.find((zone) => zone.name === name) ?? assert.fail(name);

  /** The process may die before a call takes effect, or after it, before it hears of it. */
  async function call<T>(effect: () => T): Promise<T> {
    world.callsToLive--;
    if (world.callsToLive < 0) throw new Killed();
    const result = effect();
    world.callsToLive -= 0.5;
    if (world.callsToLive < 0) throw new Killed();
    return result;
  }

  function shrink(zone: SimulatedZone, to: number): void {
    const { annotations } = zone;
    const leader = annotations["grafana.com/rollout-downscale-leader"];
    const least = leader === undefined ? world.reference : zoneNamed(leader).replicas;
    if (to < least) violations.push(`${zone.name} shrank to ${to}, below ${least}`);
    if ("grafana.com/rollout-delayed-downscale" in annotations) {
      for (let i = to; i < zone.replicas; i++) {
        const at = zone.prepared.get(i);
        if (at === undefined || world.now - at < DELAY)
          violations.push(`${zone.name}-${i} went ${at === undefined ? "unprepared" : "too early"}`);
      }
    }
    for (const other of zones) {
      if (other !== zone && other.shrunkAt !== undefined && world.now - other.shrunkAt <= MIN_TIME)
        violations.push(`${zone.name} shrank too soon after ${other.name}`);
    }
    for (const other of zones)
      if (other !== zone && other.ending > 0) violations.push(`${zone.name} shrank while ${other.name} still does`);
    zone.shrunkAt = world.now;
    zone.ending += zone.replicas - to;
  }

  const cluster: Pick<Cluster, "get" | "patch" | "change" | "discover" | "list"> = {
    list: async function* ({ plural }: { readonly plural: string }, { labelSelector = "" }: Query) {
      if (plural === "statefulsets") {
        yield await call(() => ({ items: zones.map(asStatefulSet), resourceVersion: "1" }));
        return;
      }
      const zone = zoneNamed(labelSelector.replace("name=", ""));
      const pods = Object.fromEntries(Array.from({ length: zone.ending }, (_, i) => [zone.replicas + i, { terminating: true }]));
      yield await call(() => ({
        items: podObjects({ name: zone.name, replicas: zone.replicas + zone.ending, pods }),
        resourceVersion: "1",
      }));
    } as Cluster["list"],
    get: (async (resource: { plural: string }) =>
      call(() => {
        if (resource.plural === "configmaps") throw new RolloutError("NotFound", "no tracker");
        return { spec: { replicas: world.reference }, status: {} };
      })) as Cluster["get"],
    discover: () => call(() => [{ group: "g", version: "v1", plural: "replicatemplates" }]),
    patch: () => call(() => "1"),
    change: ((_resource: unknown, ref: Ref, _type: unknown, body: unknown) =>
      call(() => {
        const zone = zoneNamed(ref.name);
        const { metadata, spec } = body as {
          metadata: { resourceVersion: string; annotations?: Record<string, string> };
          spec: { replicas: number };
        };
        if (metadata.resourceVersion !== String(zone.version)) throw new RolloutError("Conflict", "changed");
        if (spec.replicas < zone.replicas) shrink(zone, spec.replicas);
        for (let i = spec.replicas; i < zone.replicas; i++) zone.prepared.delete(i);
        zone.replicas = spec.replicas;
        Object.assign(zone.annotations, metadata.annotations);
        zone.version++;
        return asStatefulSet(zone);
      })) as Cluster["change"],
  };

  const podHttp: PodHttp = {
    send: (method, url) =>
      call(() => {
        const { name = "", ordinal = "" } = /\/\/(?<name>.+zone-[a-c])-(?<ordinal>\d+)\./.exec(url)?.groups ?? {};
        const { prepared } = zoneNamed(name);
        const mood = (world.podMood * 7 + Number(ordinal) * 3) % 11;
        if (mood === 0) throw new RolloutError("Unreachable", "refused");
        if (mood === 1) return { status: 500, body: "" };
        if (method === "DELETE") prepared.delete(Number(ordinal));
        else prepared.set(Number(ordinal), prepared.get(Number(ordinal)) ?? world.now);
        if (mood === 2) throw new RolloutError("Timeout", "no answer, but it was heard");
        if (mood === 3) return { status: 200, body: "what?" };
        return { status: 200, body: JSON.stringify({ timestamp: Math.ceil((prepared.get(Number(ordinal)) ?? 0) / 1000) }) };
      }),
  };

  return { world, zones, cluster: cluster as Cluster, podHttp };
}

export function asStatefulSet({ name, replicas, version, annotations }: SimulatedZone): StatefulSet {
  const object = statefulSetObject({ name, replicas, annotations, labels: { "grafana.com/min-time-between-zones-downscale": "12h" } });
  return { ...object, metadata: { ...object.metadata, resourceVersion: String(version) } };
}

export type World = ReturnType<typeof createWorld>;
