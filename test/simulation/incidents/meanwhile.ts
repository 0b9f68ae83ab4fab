/** What somebody does between two calls of a process, and many groups that wait for their turns. */
import { type Draft, put } from "../../emulator/objects.ts";
import { OTHER_GROUP } from "../names.ts";
import { type Action, isList, isReconciler, pause, recreate, setOf, SETS } from "../person.ts";
import { CALM, type Shape } from "../shape.ts";
import type { Sent } from "../../emulator/in-process.ts";
import type { Area } from "./incident.ts";
import { GROUPS_PATH, otherZone } from "./leases.ts";
import { shrunk, sizeOf, withOthers } from "./shrinking.ts";

const LAST_DOWNSCALE = "grafana.com/last-downscale";
const SEEN = "example.com/seen";
const TROUBLED_MS = 240_000;
/** More groups than may be slow at once, by far: the last ones wait for three others. */
const GROUPS = 50;
/** Longer than a reconciler waits for an answer. */
const SLOW_MS = 14_000;

/** A reconciler writes a zone. */
const isWrite = (actor: string, { method, path }: Sent, zone: string): boolean =>
  isReconciler(actor) && method === "PATCH" && new RegExp(`/statefulsets/${zone}(?:\\?|$)`).test(path);

/** A group of one zone whose pod never comes up. */
function otherGroup(shape: Shape, group: string): Draft {
  const text = JSON.stringify(otherZone({ ...shape, readyAfterMs: 3_600_000 }, `${group}-zone-a`));
  return JSON.parse(text.replaceAll(`"rollout-group":"${OTHER_GROUP}"`, `"rollout-group":"${group}"`)) as Draft;
}

const ACTS = {
  /** Others pin the replicas of a zone, and somebody writes it before the time of its downscale is taken back. */
  pinnedAndWritten: (people) => {
    const { world, shape, draw } = people;
    const zone = shape.zones.at(-1) ?? "";
    return withOthers(people, { zone, ms: 1, replicas: sizeOf(people, zone) }, async () => {
      let left = draw.between(1, 2);
      const end = world.disturb((actor, sent) => {
        const found = setOf(people, zone);
        const isTakenBack = isWrite(actor, sent, zone) && sent.body.includes(LAST_DOWNSCALE);
        if (!found || left === 0 || !isTakenBack || sent.body.includes('"replicas"')) return undefined;
        world.store.update("statefulsets.apps", put(found, ["metadata", "annotations", SEEN], String(left--)));
        return undefined;
      });
      await shrunk(people, zone, () => pause(people, 45_000));
      end();
    });
  },
  /** Many groups whose pods come up slowly are made at once, and lists of pods are late; one of them is made anew. */
  manyGroups: async (people) => {
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
  },
} satisfies Readonly<Record<string, Action>>;

type Act = keyof typeof ACTS;

/** Where pods are prepared, the webhook writes the time of a downscale. */
const actsIn = ({ prepared }: Shape): readonly Act[] => [
  "manyGroups",
  ...(prepared ? [] : (["pinnedAndWritten"] as const)),
];

const meanwhile: Action = (people) => ACTS[people.draw.of(actsIn(people.shape))](people);

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
