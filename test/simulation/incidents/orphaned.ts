/**
 * A zone loses its StatefulSet in the middle of its rollout, and its pods stay: somebody deletes it without them, or
 * takes it out of its group. Later it is back, and adopts them.
 */
import { fieldsOf } from "../../emulator/objects.ts";
import { NAMESPACE } from "../names.ts";
import { type Action, insist, pause, type People, recreate, setOf, SETS, until } from "../person.ts";
import { zoneObject } from "../shape.ts";
import { amidBatch } from "./amid-batch.ts";
import type { Area } from "./incident.ts";
import { podsOf } from "./rollouts.ts";

const SECOND = 1000;
const GROUP_LABEL = "rollout-group";

/** As it is written now, but for what the API server writes. */
function written(people: People, zone: string) {
  const { metadata, ...first } = zoneObject(people.shape, zone);
  const now = setOf(people, zone);
  return { ...first, metadata, spec: fieldsOf(now?.["spec"] ?? first["spec"]) };
}

const orphan = async (people: People, zone: string): Promise<void> => {
  await people.world.ask("human", "DELETE", `${SETS}/${zone}`, { propagationPolicy: "Orphan" });
};

/** Until the pod that was taken is gone, or for a moment: while it ends, and once it is missing. */
const meanwhile = async (people: People, zone: string): Promise<void> => {
  const { draw, world } = people;
  const ends = (): boolean => podsOf(people, zone).some(({ metadata }) => metadata.deletionTimestamp !== undefined);
  if (draw.chance(0.4)) await until(people, () => !ends(), { ms: 60 * SECOND, stepMs: 5 });
  else if (draw.chance(0.5)) await pause(people, draw.between(1, 3 * SECOND));
  if (draw.chance(0.2))
    for (const { metadata } of podsOf(people, zone).slice(0, 1))
      await world.ask("kubelet", "DELETE", `/api/v1/namespaces/${NAMESPACE}/pods/${metadata.name}`);
};

const INCIDENTS: Readonly<Record<string, Action>> = {
  /** The zone of which a pod was just taken is deleted without its pods, and made again later. */
  orphanedAmid: (people) =>
    amidBatch(people, async (zone) => {
      await meanwhile(people, zone);
      const again = written(people, zone);
      await orphan(people, zone);
      await pause(people, people.draw.between(5, 120) * SECOND);
      await recreate(people, SETS, again);
    }),
  /** The same with another zone, of which a pod has just gone for another reason. */
  otherOrphanedAmid: (people) =>
    amidBatch(people, async (taken) => {
      const zone = people.draw.of(people.shape.zones.filter((other) => other !== taken));
      const again = written(people, zone);
      await orphan(people, zone);
      await pause(people, people.draw.between(1, 60) * SECOND);
      await recreate(people, SETS, again);
    }),
  /** The zone of which a pod was just taken leaves its group, and comes back. */
  unlabelledAmid: (people) =>
    amidBatch(people, async (zone) => {
      // A zone without a group waits for no other before it shrinks.
      if (people.shape.prepared) return;
      await meanwhile(people, zone);
      const group = setOf(people, zone)?.metadata.labels?.[GROUP_LABEL] ?? null;
      await insist(people, `${SETS}/${zone}`, { metadata: { labels: { [GROUP_LABEL]: null } } });
      await pause(people, people.draw.between(5, 60) * SECOND);
      await insist(people, `${SETS}/${zone}`, { metadata: { labels: { [GROUP_LABEL]: group } } });
    }),
};

export const ORPHANED_AREA: Area = {
  shape: ({ replicas, maxUnavailable }, draw) => ({
    replicas: Math.max(2, replicas),
    maxUnavailable: draw.chance(0.7) ? 1 : maxUnavailable,
  }),
  incidents: INCIDENTS,
};
