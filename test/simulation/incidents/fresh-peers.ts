/** Pods that have come back a moment ago, whatever their statuses say of it. */
import { dig, fieldsOf, isTrue, listOf, timestamp } from "../../emulator/objects.ts";
import { ordinalOf, zoneOf } from "../names.ts";
import { drain, PATIENCE_MS, pause, type People, podOf, PODS, podsIn, until } from "../person.ts";

const HOUR_MS = 3_600_000;

/** The pod's status with other times of its readiness, as its kubelet has written them. */
function rewrite(people: People, name: string, times: { ready?: string | null; started?: string }): void {
  const pod = podOf(people, name);
  if (!pod || !isTrue(pod, "Ready")) return;
  const status = fieldsOf(pod["status"]);
  const conditions = listOf(status["conditions"]).map((one) => {
    if (dig(one, "type") !== "Ready" || times.ready === undefined) return one;
    const { lastTransitionTime: _, ...untimed } = fieldsOf(one);
    return times.ready === null ? untimed : { ...untimed, lastTransitionTime: times.ready };
  });
  const containerStatuses = listOf(status["containerStatuses"]).map((one) =>
    times.started === undefined ? one : { ...fieldsOf(one), state: { running: { startedAt: times.started } } },
  );
  people.world.store.update("pods", { ...pod, status: { ...status, conditions, containerStatuses } });
}

/** How a pod comes to be ready, and since when seems to be unlike what it was. */
const FRESH = {
  restarted: (people: People, name: string) => {
    rewrite(people, name, { started: timestamp(people.schedule.now()) });
    return Promise.resolve();
  },
  /** The node's clock is behind. */
  behind: async (people: People, name: string) => {
    const uid = podOf(people, name)?.metadata.uid;
    await people.world.ask("human", "DELETE", `${PODS}/${name}`);
    await until(people, () => {
      const pod = podOf(people, name);
      return pod !== undefined && pod.metadata.uid !== uid && isTrue(pod, "Ready");
    });
    const earlier = timestamp(people.schedule.now() - HOUR_MS);
    rewrite(people, name, { ready: earlier, started: earlier });
  },
  untimed: (people: People, name: string) => {
    rewrite(people, name, { ready: null });
    people.schedule.after(PATIENCE_MS, () => rewrite(people, name, { ready: timestamp(people.schedule.now()) }));
    return pause(people, 1000);
  },
} satisfies Readonly<Record<string, (people: People, name: string) => Promise<unknown>>>;

/** Peers of a pod that is to go have been ready for a moment only, each in this way, or in one that is drawn. */
export async function freshPeers(people: People, way?: keyof typeof FRESH): Promise<void> {
  const { draw } = people;
  const pods = podsIn(people);
  if (pods.length === 0) return;
  const name = draw.of(pods);
  const peers = pods.filter((one) => zoneOf(one) !== zoneOf(name) && ordinalOf(one) === ordinalOf(name));
  const comes = way ? FRESH[way] : draw.of(Object.values(FRESH));
  await Promise.all(peers.map((peer) => comes(people, peer)));
  await drain(people, name);
}
