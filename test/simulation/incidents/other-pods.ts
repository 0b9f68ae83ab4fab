/** What befalls pods of one zone just as another one begins, which the status of their StatefulSet does not show. */
import { isTrue } from "../../emulator/objects.ts";
import { PHASED, phasedSet } from "../checks/objects.ts";
import { NAMESPACE } from "../names.ts";
import {
  type Action,
  annotatePod,
  annotateZone,
  changeTemplate,
  freezeReconcilers,
  insist,
  pause,
  type People,
  PODS,
  replicasOf,
  scale,
  SETS,
} from "../person.ts";
import { areZonesSettled } from "../oracles/stability.ts";
import { amidBatch, nextTaken } from "./amid-batch.ts";
import { newImage, podsOf, roll, statusOf, until } from "./rollouts.ts";
import { underQuota, withPods } from "./shrinking.ts";

const PAUSED = "grafana.com/rollout-paused";
/** For which a controller stands still, or pods are kept. */
export const STANDS_MS = 20_000;

const otherThan = ({ draw, shape }: People, zone: string): string =>
  draw.of(shape.zones.filter((other) => other !== zone));
export const settled = (people: People): Promise<boolean> =>
  until(people, () => areZonesSettled(people.world.store, people.shape.zones));

/** Two zones of which the second has a new template, which it gets only once it is no longer paused. */
async function beforeRollout(people: People, act: (zone: string, other: string) => Promise<unknown>): Promise<void> {
  const zone = people.draw.of(people.shape.zones);
  const other = otherThan(people, zone);
  if (!(await settled(people))) return;
  await annotateZone(people, other, { [PAUSED]: "true" });
  await changeTemplate(people, other, newImage(people));
  await pause(people, 1000);
  await act(zone, other);
  await annotateZone(people, other, { [PAUSED]: null });
}

/** All pods of the zone have its template, and one is not ready yet. */
function isComingUp(people: People, zone: string): boolean {
  const revision = statusOf(people, zone, "updateRevision");
  const pods = podsOf(people, zone).filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  return (
    pods.length === replicasOf(people, zone) &&
    pods.every(({ metadata }) => metadata.labels?.["controller-revision-hash"] === revision) &&
    pods.some((pod) => !isTrue(pod, "Ready"))
  );
}

export const OTHER_PODS: Readonly<Record<string, Action>> = {
  /** The status of a zone does not tell yet that its last pods are ready. */
  statusStands: async (people) => {
    await settled(people);
    const taken = nextTaken(people);
    await roll(people);
    const zone = await taken;
    if (zone !== undefined && (await until(people, () => isComingUp(people, zone))))
      people.world.stall("statefulSets", people.shape.readyAfterMs + STANDS_MS);
    await pause(people, STANDS_MS);
  },
  /** Amid a batch another zone shrinks, and its pod stays. */
  keptAmid: (people) =>
    amidBatch(people, async (taken) => {
      const zone = otherThan(people, taken);
      const replicas = replicasOf(people, zone);
      if (replicas < 2) return;
      freezeReconcilers(people, 2000);
      await withPods(people, zone, { "sim/kept": "true" }, async () => {
        await scale(people, zone, replicas - 1);
        await pause(people, STANDS_MS);
      });
      await scale(people, zone, replicas);
    }),
  /** A pod is missing, and one more than there should be stays. */
  keptBesideGap: (people) =>
    beforeRollout(people, async (zone, other) => {
      const replicas = replicasOf(people, zone);
      if (replicas < 2) return;
      await withPods(people, zone, { "sim/kept": "true" }, () =>
        underQuota(people, async () => {
          await people.world.ask("human", "DELETE", `${PODS}/${zone}-0`);
          await scale(people, zone, replicas - 1);
          await pause(people, people.shape.exitAfterMs + 1000);
          await annotateZone(people, other, { [PAUSED]: null });
          await pause(people, STANDS_MS);
        }),
      );
      await scale(people, zone, replicas);
    }),
  /** A pod ends slowly, and its StatefulSet's status still counts it as ready. */
  slowExit: (people) =>
    beforeRollout(people, async (zone, other) => {
      const pod = `${zone}-${people.draw.below(replicasOf(people, zone))}`;
      await annotatePod(people, pod, { "sim/exit-after-ms": String(STANDS_MS) });
      await people.world.ask("human", "DELETE", `${PODS}/${pod}`);
      await annotateZone(people, other, { [PAUSED]: null });
      await pause(people, STANDS_MS);
    }),
  /** A pod has the labels of another zone's, and its controller does not know yet. */
  relabelled: (people) =>
    beforeRollout(people, async (zone, other) => {
      const pod = `${zone}-${people.draw.below(replicasOf(people, zone))}`;
      const label = (name: string): Promise<unknown> =>
        people.world.ask("human", "PATCH", `${PODS}/${pod}`, { metadata: { labels: { name } } });
      people.world.stall("statefulSets", STANDS_MS);
      await label(other);
      await annotateZone(people, other, { [PAUSED]: null });
      await pause(people, STANDS_MS - 2000);
      await label(zone);
    }),
  /** Of the first pods with a new template one container works; it is mended while a pod of another zone is ill. */
  halfWorking: async (people) => {
    const { shape } = people;
    await settled(people);
    const taken = nextTaken(people);
    const image = newImage(people);
    const containers = [
      { name: "main", image },
      { name: "sidecar", image },
    ];
    const template = { metadata: { annotations: { "sim/crash": "last" } }, spec: { containers } };
    for (const zone of shape.zones) await insist(people, `${SETS}/${zone}`, { spec: { template } });
    const zone = await taken;
    await pause(people, shape.exitAfterMs + shape.readyAfterMs + 3000);
    const ill = `${otherThan(people, zone ?? "")}-0`;
    await annotatePod(people, ill, { "sim/ready": "false" });
    await pause(people, 3000);
    await roll(people);
    await pause(people, STANDS_MS);
    await annotatePod(people, ill, { "sim/ready": null });
  },
  /** A pod that is never ready has the labels of those that a PhasedRollout rolls, and no StatefulSet controls it. */
  strangerBeside: async (people) => {
    const { phased } = people.shape;
    if (!phased) return;
    const { template } = phasedSet(phased)["spec"] as { template: { metadata: object; spec: object } };
    const metadata = {
      ...template.metadata,
      annotations: { "sim/ready": "false" },
      name: `${PHASED}-debug-0`,
      namespace: NAMESPACE,
    };
    const pod = { apiVersion: "v1", kind: "Pod", metadata, spec: template.spec };
    await people.world.ask("human", "POST", PODS, pod);
  },
};
