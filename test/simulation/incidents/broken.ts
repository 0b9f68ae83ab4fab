/** A StatefulSet of a PhasedRollout that has never come up: only another template cures its pods. */
import { dig, type Draft, fieldsOf } from "../../emulator/objects.ts";
import type { KubeObject } from "../../emulator/store.ts";
import { PHASED, type PhasedShape, phasedSet } from "../checks/objects.ts";
import { phasedPath, setPath } from "../checks/people.ts";
import { HELD, isCrashing, isOutdated } from "../checks/phased-set.ts";
import { NAMESPACE, ordinalOf, zoneOf } from "../names.ts";
import { isReady } from "../oracles/stored.ts";
import { insist, pause, type People, recreate, scale, setOf, SETS, until } from "../person.ts";
import type { Area } from "./incident.ts";
import { onceSettled, PHASED_AREA, roll, withPhased } from "./phased.ts";

/** A person looks once the last template that people set was seen, and gives it so long to reach all pods unchecked. */
const [SEEN_MS, CURED_MS] = [15_000, 120_000];

/** With a template whose containers end as they begin. */
function brokenSet({ draw }: People, phased: PhasedShape): Draft {
  const set = phasedSet(phased, draw.between(100, 999), draw.of([0, HELD]));
  const template = fieldsOf(dig(set, "spec", "template"));
  const metadata = fieldsOf(template["metadata"]);
  const annotations = { ...fieldsOf(metadata["annotations"]), "sim/crash": "true" };
  const spec = { ...fieldsOf(set["spec"]), template: { ...template, metadata: { ...metadata, annotations } } };
  return { ...set, spec };
}

const podsOf = ({ world }: People): readonly KubeObject[] =>
  world.store.list("pods", NAMESPACE).filter(({ metadata }) => zoneOf(metadata.name) === PHASED);

/** An outdated pod crashes below one that serves. */
function isKept(people: People): boolean {
  const revision = dig(setOf(people, PHASED), "status", "updateRevision");
  const outdated = podsOf(people).filter((pod) => isOutdated(pod, revision));
  const indexOf = ({ metadata }: KubeObject): number => ordinalOf(metadata.name);
  const lowest = Math.min(...outdated.filter(isCrashing).map(indexOf));
  return outdated.some((pod) => isReady(pod) && indexOf(pod) > lowest);
}

/** Installed anew. */
async function install(people: People, phased: PhasedShape): Promise<void> {
  const { world, draw } = people;
  await world.ask("human", "DELETE", setPath);
  await recreate(people, SETS, brokenSet(people, phased));
  await pause(people, draw.between(1000, 90_000));
}

export const BROKEN_AREA: Area = {
  /** A check that never passes keeps the cure from them. */
  shape(shape, draw) {
    const own = PHASED_AREA.shape(shape, draw);
    return own?.phased && { ...own, phased: { ...own.phased, last: "good" } };
  },
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
  /** A pod below one that serves is not cured by its release: people give the checks up. */
  async setRight(people) {
    await pause(people, SEEN_MS);
    if (!isKept(people)) return;
    await insist(people, phasedPath, { spec: { skipCheck: true } });
    await until(people, () => podsOf(people).every(isReady), { ms: CURED_MS });
    await insist(people, phasedPath, { spec: { skipCheck: false } });
  },
};
