/** A template of a StatefulSet that a PhasedRollout rolls is taken back late, or around pods of an earlier StatefulSet. */
import { dig } from "../../emulator/objects.ts";
import { PHASED, PHASED_REPLICAS } from "../checks/objects.ts";
import { setPath } from "../checks/people.ts";
import { insist, pause, type People, recreate, setOf, SETS, until } from "../person.ts";
import type { Area } from "./incident.ts";
import {
  anotherSet,
  onceSettled,
  PHASED_AREA,
  promote,
  release,
  templateNow,
  unguarded,
  withPhased,
  write,
} from "./phased.ts";

const STANDS_MS = 40_000;
/** For longer than a template is waited for, and not for so long that only another template cures its pods. */
const SLOW_MS = 150_000;

/** A template whose pods are ready after so long. */
function withReadiness(ms: number | undefined): object {
  const annotations = { "sim/ready-after-ms": ms === undefined ? null : String(ms) };
  return { spec: { template: { metadata: { annotations } } } };
}

const isBack = (people: People): boolean =>
  dig(setOf(people, PHASED), "status", "currentRevision") === dig(setOf(people, PHASED), "status", "updateRevision");

export const REVERTED_AREA: Area = {
  shape: PHASED_AREA.shape,
  incidents: onceSettled({
    /** The last pod has just been released. */
    late: async (people) => {
      const before = templateNow(people);
      await release(people, PHASED_REPLICAS);
      await unguarded(people, () => write(people, before));
      // Its controller stands still once it has seen that.
      await until(people, () => isBack(people), { ms: 5000, stepMs: 1 });
      people.world.stall("statefulSets", STANDS_MS);
      await pause(people, STANDS_MS);
    },
    /** The StatefulSet was made again around its pods, and a template is taken back before its pod has come up. */
    aroundOthers: withPhased(async (people, phased) => {
      const { world } = people;
      await world.ask("human", "DELETE", setPath, { propagationPolicy: "Orphan" });
      await recreate(people, SETS, anotherSet(people, phased));
      await pause(people, 15_000);
      const before = templateNow(people);
      await insist(people, setPath, withReadiness(SLOW_MS));
      await promote(people, 1);
      await pause(people, 10_000);
      await write(people, before);
      await pause(people, STANDS_MS);
    }),
  }),
  /** Two at once may have taken each other's template for the one before. */
  async setRight(people) {
    await insist(people, setPath, withReadiness(people.shape.phased?.readyAfterMs));
  },
};
