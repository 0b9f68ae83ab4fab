/** What has happened to a simulated group before a plan is made, and how its pods get on. */
import { decideRollout } from "../../../reconciler/rollout/decide-rollout.ts";
import {
  calmDown,
  carryOut,
  createWorld,
  happen,
  observe,
  type Happening,
  type SimulatedZone,
} from "../rollout/world.ts";

export interface Past {
  readonly sizes: readonly number[];
  readonly maxUnavailable: number;
  readonly past: readonly { readonly what: Happening; readonly zone: number; readonly pod: number }[];
  /** Rolled out so far. */
  readonly ticks: number;
}

/** A group in the middle of a rollout. */
export function playPast({ sizes, maxUnavailable, past, ticks }: Past): SimulatedZone[] {
  const zones = createWorld(sizes, maxUnavailable);
  happen("deploy", zones, zones[0] as SimulatedZone, 0);
  for (let i = 0; i < ticks; i++) {
    calmDown(zones);
    const decision = decideRollout(observe(zones));
    if (decision) carryOut(decision, zones);
  }
  for (const { what, zone, pod } of past) happen(what, zones, zones[zone % zones.length] as SimulatedZone, pod);
  return zones;
}

/** A pod after the other, in an order of their own, gets on. */
export function moveOne(zones: readonly SimulatedZone[], pick: number): boolean {
  const moving = zones.flatMap((zone) =>
    zone.pods.flatMap((pod, at) =>
      ["terminating", "missing", "recovering"].includes(pod.phase) ? [{ zone, pod, at }] : [],
    ),
  );
  const next = moving[pick % Math.max(1, moving.length)];
  if (!next) return false;
  const what = { terminating: "vanish", missing: "recreate", recovering: "recover" } as const;
  happen(what[next.pod.phase as keyof typeof what], zones, next.zone, next.at);
  return true;
}

/** All pods that are on their way get there together. */
export function moveAll(zones: readonly SimulatedZone[]): boolean {
  let moved = false;
  while (moveOne(zones, 0)) moved = true;
  return moved;
}
