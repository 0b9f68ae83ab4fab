/** Many groups that wait for their turns. */
import type { Draft } from "../../emulator/objects.ts";
import { OTHER_GROUP } from "../names.ts";
import { type Action, isList, isReconciler, pause, recreate, SETS } from "../person.ts";
import { CALM, type Shape } from "../shape.ts";
import type { Area } from "./incident.ts";
import { GROUPS_PATH, otherZone } from "./leases.ts";

const TROUBLED_MS = 240_000;
/** More groups than may be slow at once, by far: the last ones wait for three others. */
const GROUPS = 50;
/** Longer than a reconciler waits for an answer. */
const SLOW_MS = 14_000;

/** A group of one zone whose pod never comes up. */
function otherGroup(shape: Shape, group: string): Draft {
  const text = JSON.stringify(otherZone({ ...shape, readyAfterMs: 3_600_000 }, `${group}-zone-a`));
  return JSON.parse(text.replaceAll(`"rollout-group":"${OTHER_GROUP}"`, `"rollout-group":"${group}"`)) as Draft;
}

/** Many groups whose pods come up slowly are made at once, and lists of pods are late; one of them is made anew. */
const meanwhile: Action = async (people) => {
  const { world, shape, draw } = people;
  const kind = `group-${draw.below(1000)}`;
  const names = Array.from({ length: GROUPS }, (_, i) => `${kind}-${i}`);
  for (const name of names) await recreate(people, SETS, otherGroup(shape, name));
  const end = world.disturb((actor, sent) =>
    isReconciler(actor) && isList(sent, "pods") ? { bodyLateMs: SLOW_MS } : undefined,
  );
  await pause(people, 6 * SLOW_MS);
  const again = draw.of(names);
  await world.ask("human", "DELETE", `${SETS}/${again}-zone-a`);
  await recreate(people, SETS, otherGroup(shape, again));
  await pause(people, 2 * SLOW_MS);
  end();
  for (const name of names) {
    await world.ask("human", "DELETE", `${SETS}/${name}-zone-a`);
    await world.ask("human", "DELETE", `${GROUPS_PATH}/${name}`);
  }
};

export const MEANWHILE_AREA: Area = {
  shape(shape, draw) {
    const by = draw.of(["leader", "template"]);
    const prepared = draw.chance(0.4);
    return {
      followers: by === "leader",
      mirrored: by === "template" ? { delayMs: 0 } : undefined,
      prepared,
      tracker: prepared,
      secondsBetween: 15,
      replicas: draw.between(3, 4),
      maxUnavailable: draw.between(2, 3),
      accelerates: false,
      budget: draw.between(2, 3),
      partitioned: false,
      suspends: false,
      gate: undefined,
      windows: undefined,
      exitAfterMs: draw.of([1000, 8000]),
      readyAfterMs: 10_000,
      ...(draw.chance(0.6) && CALM),
      ...(draw.chance(0.3) && { callsPerSecond: draw.of([2, 5]) }),
      actions: Math.min(shape.actions, draw.of([0, 4, 8])),
      troubledMs: Math.max(shape.troubledMs, TROUBLED_MS),
    };
  },
  incidents: { meanwhile },
};
