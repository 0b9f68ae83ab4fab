/** What befalls pods of a zone while its batches grow. */
import { dig } from "../../emulator/objects.ts";
import { NAMESPACE } from "../names.ts";
import { type Action, afflict, pause, type People } from "../person.ts";

/** For so long one waits for a zone that is in the middle of its rollout, and looks so often. */
const FOR_MS = 120_000;
const LOOK_MS = 500;

/** Pods with the new template in a zone of which some have it, and at least two do not. */
function findUpdated({ world, shape }: People): readonly string[] {
  return shape.zones.flatMap((zone) => {
    const revision = dig(world.store.get("statefulsets.apps", NAMESPACE, zone), "status", "updateRevision");
    const pods = world.store.list("pods", NAMESPACE).filter(({ metadata }) => metadata.labels?.["name"] === zone);
    const updated = pods.filter(({ metadata }) => metadata.labels?.["controller-revision-hash"] === revision);
    return pods.length - updated.length >= 2 ? updated.map(({ metadata }) => metadata.name) : [];
  });
}

export const batchActions: Readonly<Record<string, Action>> = {
  /** The new template turns out to be a bad one, in a pod that had come up. */
  afflictUpdated: async (people) => {
    const { schedule, draw } = people;
    let pods: readonly string[] = [];
    for (const end = schedule.now() + FOR_MS; pods.length === 0 && schedule.now() < end;) {
      await pause(people, LOOK_MS);
      pods = findUpdated(people);
    }
    if (pods.length === 0) return;
    const [crash, unready] = [
      ["sim/crash", "true"],
      ["sim/ready", "false"],
    ] as const;
    const illness = draw.of([crash, unready]);
    await afflict(people, draw.of(pods), illness, draw.of([2000, 30_000, 90_000]));
  },
};
