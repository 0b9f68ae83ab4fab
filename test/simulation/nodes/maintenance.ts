/** Somebody else who works on nodes, and says so by their conditions. */
import { dig, listOf, timestamp } from "../../emulator/objects.ts";
import { type Action, pause, type People } from "../person.ts";
import { type LifecycleType, OURS, trueConditions } from "./lifecycle.ts";

const THEIRS = "Repair";

/** Writes these as somebody else does. */
export function say(
  { world, schedule }: People,
  name: string,
  conditions: Readonly<Partial<Record<LifecycleType, boolean>>>,
): void {
  const node = world.store.get("nodes", undefined, name);
  if (!node) return;
  const at = timestamp(schedule.now());
  const said = Object.entries(conditions).map(([type, isTrue]) => ({
    type,
    status: isTrue ? "True" : "False",
    reason: THEIRS,
    message: "",
    lastTransitionTime: at,
  }));
  const others = listOf(dig(node, "status", "conditions")).filter((one) => !(String(dig(one, "type")) in conditions));
  const status = { ...(node["status"] as object), conditions: [...others, ...said] };
  world.store.update("nodes", { ...node, status });
}

export const lifecycleActions: Readonly<Record<string, Action>> = {
  /** Somebody repairs a node, step by step, and says so; the node may restart on the way. */
  maintainNode: async (people) => {
    const { draw, world } = people;
    const host = draw.of(world.fleet?.hosts ?? []);
    const { name } = host;
    const step = (): Promise<void> => pause(people, draw.between(5000, draw.of([30_000, 400_000])));
    if (draw.chance(0.5)) say(people, name, { MaintenancePlanned: true });
    await step();
    say(people, name, { MaintenancePlanned: false, DrainInProgress: true });
    await step();
    say(people, name, { DrainInProgress: false, Drained: true, MaintenanceInProgress: true });
    if (draw.chance(0.3)) {
      say(people, name, { GracefulNodeShutdownInProgress: true });
      host.reboot();
    }
    await step();
    say(people, name, { Drained: false, MaintenanceInProgress: false, GracefulNodeShutdownInProgress: false });
  },
};

/** Whoever works on a node has finished. */
export function endMaintenance(people: People, name: string): void {
  const theirs = trueConditions(people.world.store.get("nodes", undefined, name)).filter(
    ({ reason }) => reason !== OURS,
  );
  if (theirs.length > 0) say(people, name, Object.fromEntries(theirs.map(({ type }) => [type, false])));
}
