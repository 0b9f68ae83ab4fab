/** A StatefulSet of a PhasedRollout whose partition others pin, whose controller is slow, or that goes back with all its pods. */
import { PHASED, PHASED_REPLICAS } from "../checks/objects.ts";
import { HELD } from "../checks/phased-set.ts";
import { promoteStep, setPath } from "../checks/people.ts";
import { pause, recreate, SETS } from "../person.ts";
import type { Area } from "./incident.ts";
import {
  anotherSet,
  onceSettled,
  PHASED_AREA,
  release,
  roll,
  settle,
  templateNow,
  unguarded,
  withPhased,
  write,
} from "./phased.ts";
import { withOthers } from "./shrinking.ts";

/** A release that has begun is over after so many steps. */
const TRIES = 5;

export const PINNED_AREA: Area = {
  shape(shape, draw) {
    const own = PHASED_AREA.shape(shape, draw);
    return own?.phased && { ...own, phased: { ...own.phased, readyAfterMs: draw.of([300, 20_000]) } };
  },
  incidents: onceSettled({
    /** A webhook of others lets no pod be released, and says nothing of it. */
    pinned: (people) =>
      withOthers(people, { zone: PHASED, ms: 1, partition: HELD }, async () => {
        await roll(people);
        await pause(people, 20_000);
        await promoteStep(people);
        await pause(people, people.draw.between(5000, 40_000));
      }),
    /** It is made again around its pods, from a copy with its claim, and its controller has not seen that. */
    unobserved: withPhased(async (people, phased) => {
      const { world, draw } = people;
      for (let tries = 0; !(await settle(people)) && people.isTroubled() && tries < TRIES; tries++)
        await promoteStep(people);
      const { metadata, ...set } = anotherSet(people, phased);
      const annotations = { ...metadata.annotations, "sts.plus/phasedRollout": PHASED };
      world.stall("statefulSets", draw.between(15_000, 40_000));
      await world.ask("human", "DELETE", setPath, { propagationPolicy: "Orphan" });
      await recreate(people, SETS, { ...set, metadata: { ...metadata, annotations } });
      await pause(people, 40_000);
    }),
    /** All its pods are released, and their template is taken back past the webhook. */
    revertAll: async (people) => {
      const before = templateNow(people);
      await release(people, PHASED_REPLICAS);
      await unguarded(people, () => write(people, before));
      await pause(people, 60_000);
    },
  }),
};
