/** A StatefulSet of a PhasedRollout that has never come up: only another template cures its pods. */
import { dig, type Draft, fieldsOf } from "../../emulator/objects.ts";
import { PHASED, type PhasedShape, phasedSet } from "../checks/objects.ts";
import { setPath } from "../checks/people.ts";
import { HELD } from "../checks/phased-set.ts";
import { pause, type People, recreate, scale, SETS } from "../person.ts";
import type { Area } from "./incident.ts";
import { onceSettled, PHASED_AREA, roll, withPhased } from "./phased.ts";

/** With a template whose containers end as they begin. */
function brokenSet({ draw }: People, phased: PhasedShape): Draft {
  const set = phasedSet(phased, draw.between(100, 999), draw.of([0, HELD]));
  const template = fieldsOf(dig(set, "spec", "template"));
  const metadata = fieldsOf(template["metadata"]);
  const annotations = { ...fieldsOf(metadata["annotations"]), "sim/crash": "true" };
  const spec = { ...fieldsOf(set["spec"]), template: { ...template, metadata: { ...metadata, annotations } } };
  return { ...set, spec };
}

/** Installed anew. */
async function install(people: People, phased: PhasedShape): Promise<void> {
  const { world, draw } = people;
  await world.ask("human", "DELETE", setPath);
  await recreate(people, SETS, brokenSet(people, phased));
  await pause(people, draw.between(1000, 90_000));
}

/** The same as the releases have. */
export const BROKEN_AREA: Area = {
  shape: PHASED_AREA.shape,
  incidents: onceSettled({
    neverUp: withPhased(async (people, phased) => {
      await install(people, phased);
      await roll(people);
      await pause(people, people.draw.between(1000, 120_000));
    }),
    /** The first cure is none. */
    mendedTwice: withPhased(async (people, phased) => {
      await install(people, phased);
      await roll(people, true);
      await pause(people, people.draw.between(1000, 60_000));
      await roll(people);
      await pause(people, people.draw.between(1000, 60_000));
    }),
    /** Somebody wants other pods meanwhile. */
    scaledMeanwhile: withPhased(async (people, phased) => {
      const { draw } = people;
      await install(people, phased);
      await scale(people, PHASED, draw.between(1, 6));
      await roll(people);
      await pause(people, draw.between(1000, 60_000));
    }),
  }),
};
