/** People who freeze rollouts. */
import { type Action, insist, pause, SETS } from "../person.ts";
import type { Shape } from "../shape.ts";
import { FREEZES, SPOILT, windowAnnotations } from "./shape.ts";

const without = (names: readonly string[]) => ({
  metadata: { annotations: Object.fromEntries(names.map((name) => [name, null])) },
});

/** What people do about windows, where there are some. */
export const windowActions: Readonly<Record<string, Action>> = {
  freezeRollouts: async (people) => {
    const { draw, schedule, shape } = people;
    const until = schedule.now() + draw.between(150, 300) * 1000;
    const freeze = [schedule.now(), until].map((at) => `${new Date(at).toISOString().slice(0, 19)}Z`).join("/");
    for (const zone of shape.zones)
      await insist(people, `${SETS}/${zone}`, { metadata: { annotations: { [FREEZES]: freeze } } });
    await pause(people, draw.between(1000, 200_000));
    // Ended early by a person, or by itself.
    if (draw.chance(0.3)) for (const zone of shape.zones) await insist(people, `${SETS}/${zone}`, without([FREEZES]));
  },
  /** Somebody writes what nobody can read, and mends it after a while. */
  spoilWindow: async (people) => {
    const { draw, shape } = people;
    const annotations = draw.of(SPOILT);
    for (const zone of shape.zones) await insist(people, `${SETS}/${zone}`, { metadata: { annotations } });
    await pause(people, draw.between(20_000, 250_000));
    for (const zone of shape.zones) await insist(people, `${SETS}/${zone}`, mended(shape, Object.keys(annotations)));
  },
};

/** These annotations as the zones were written with. */
function mended({ windows }: Shape, names: readonly string[]): object {
  const right: Readonly<Record<string, string>> = windows ? windowAnnotations(windows) : {};
  return { metadata: { annotations: Object.fromEntries(names.map((name) => [name, right[name] ?? null])) } };
}

/** The end of the trouble: no freeze, and in some seeds no window. */
export const windowsRight: Action = async (people) => {
  const { shape } = people;
  const { windows } = shape;
  if (!windows) return;
  const names = [FREEZES, ...(windows.removed ? Object.keys(windowAnnotations(windows)) : [])];
  for (const zone of shape.zones) await insist(people, `${SETS}/${zone}`, without(names));
};
