/** A template of a StatefulSet that a PhasedRollout rolls is taken back late, or around pods of an earlier StatefulSet. */
import { dig } from "../../emulator/objects.ts";
import { PHASED, PHASED_REPLICAS } from "../checks/objects.ts";
import { setPath } from "../checks/people.ts";
import { pause, type People, recreate, setOf, SETS, until } from "../person.ts";
import type { Area } from "./incident.ts";
import { anotherSet, onceSettled, PHASED_AREA, release, templateNow, unguarded, withPhased, write } from "./phased.ts";

const STANDS_MS = 40_000;

const isBack = (people: People): boolean =>
  dig(setOf(people, PHASED), "status", "currentRevision") === dig(setOf(people, PHASED), "status", "updateRevision");

/** Its controller stands still once it has seen that. */
async function takeBack(people: People, before: object): Promise<void> {
  await unguarded(people, () => write(people, before));
  await until(people, () => isBack(people), { ms: 5000, stepMs: 1 });
  people.world.stall("statefulSets", STANDS_MS);
  await pause(people, STANDS_MS);
}

export const REVERTED_AREA: Area = {
  shape: PHASED_AREA.shape,
  incidents: onceSettled({
    /** The last pod has just been released. */
    late: async (people) => {
      const before = templateNow(people);
      await release(people, PHASED_REPLICAS);
      await takeBack(people, before);
    },
    /** The StatefulSet was made again around its pods, and the template has never come up. */
    aroundOthers: withPhased(async (people, phased) => {
      const { world } = people;
      await world.ask("human", "DELETE", setPath, { propagationPolicy: "Orphan" });
      await recreate(people, SETS, anotherSet(people, phased));
      await pause(people, 15_000);
      const before = templateNow(people);
      await release(people, 1, true);
      await pause(people, 10_000);
      await takeBack(people, before);
    }),
  }),
};
