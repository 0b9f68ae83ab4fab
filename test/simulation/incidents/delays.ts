/**
 * What a rollout reads comes late, is old or not whole, just as it decides by it: slow answers, controllers that stand
 * still, pods that others keep or relabel, and pods of which one container works.
 */
import type { Sent } from "../../emulator/in-process.ts";
import { dig, isTrue } from "../../emulator/objects.ts";
import type { KubeObject } from "../../emulator/store.ts";
import { callers } from "../network.ts";
import {
  type Action,
  annotatePod,
  annotateZone,
  changeTemplate,
  disturbFor,
  drain,
  insist,
  isList,
  PATIENCE_MS,
  pause,
  type People,
  podOf,
  podsIn,
  PODS,
  replicasOf,
  scale,
  SETS,
  until as waitUntil,
} from "../person.ts";
import { areZonesSettled } from "../oracles/stability.ts";
import { NO_FAULTS } from "../shape.ts";
import { amidBatch, nextTaken } from "./amid-batch.ts";
import type { Area } from "./incident.ts";
import { changeRetention, editGroup, LEASE_PATH, QUIET_MS } from "./leases.ts";
import { newImage, podsOf, roll, statusOf, until } from "./rollouts.ts";
import { underQuota, withPods } from "./shrinking.ts";

const PAUSED = "grafana.com/rollout-paused";
/** Of one group alone: before each pod of a batch. */
const OF_GROUP = /rollout-group(?:=|%3D)/;
const BUDGETS = "zoneawarepoddisruptionbudgets";
/** So long the trouble lasts at least, with so few other actions. */
const [TROUBLED_MS, ACTIONS] = [240_000, 6];
/** For which a controller stands still, or pods are kept. */
const STANDS_MS = 20_000;

const isDeletion = ({ method, path }: Sent): boolean => method === "DELETE" && path.includes("/pods/");
const isReconciler = (actor: string): boolean => actor.startsWith("reconciler-");
const latestRun = ({ world }: People): string | undefined =>
  world.processes().findLast(({ name }) => isReconciler(name))?.name;
const freeze = ({ world }: People, ms: number): void => {
  for (const process of world.processes()) if (isReconciler(process.name)) process.freeze(ms);
};
const otherThan = ({ draw, shape }: People, zone: string): string =>
  draw.of(shape.zones.filter((other) => other !== zone));
const currentOf = (set: KubeObject | undefined): unknown => dig(set, "status", "currentRevision");
const settled = (people: People): Promise<boolean> =>
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

/** Such calls of reconcilers are answered slowly amid a rollout. */
async function slowly(people: People, isSlow: (sent: Sent) => boolean, late = [1200, 3000, 8000]): Promise<void> {
  const bodyLateMs = people.draw.of(late);
  const slow = disturbFor(people, people.draw.between(60_000, 120_000), (actor, sent) =>
    isReconciler(actor) && isSlow(sent) ? { bodyLateMs } : undefined,
  );
  await roll(people);
  await slow;
}

const INCIDENTS: Readonly<Record<string, Action>> = {
  slowZones: (people) => slowly(people, (sent) => isList(sent, "statefulsets")),
  slowBudgets: (people) => slowly(people, (sent) => isList(sent, BUDGETS)),
  slowPods: (people) => slowly(people, (sent) => isList(sent, "pods")),
  /** A batch takes long: it begins with a run, which has a minute. */
  slowBatch: async (people) => {
    await settled(people);
    const before = latestRun(people);
    await waitUntil(people, () => latestRun(people) !== before);
    const isOfBatch = (sent: Sent): boolean => isList(sent, "statefulsets") && OF_GROUP.test(sent.path);
    await slowly(people, (sent) => isDeletion(sent) || isOfBatch(sent), [5500]);
  },
  /** Pods are deleted, and the API server says that they may not have been. */
  unsaidDeletions: async (people) => {
    const { draw } = people;
    const unsaid = disturbFor(people, draw.between(60_000, 120_000), (actor, sent) =>
      isReconciler(actor) && isDeletion(sent) && draw.chance(0.5)
        ? { unsaid: "etcdserver: request timed out" }
        : undefined,
    );
    await roll(people);
    await unsaid;
  },
  /** Steps are slow, and meanwhile the specs of a zone and of the group change, one after the other. */
  editedMeanwhile: async (people) => {
    const { draw } = people;
    const slow = disturbFor(people, 70_000, (actor, sent) =>
      isReconciler(actor) && isList(sent, "pods") ? { bodyLateMs: 4000 } : undefined,
    );
    await roll(people);
    for (let edits = 12; edits > 0; edits--) {
      await changeRetention(people);
      await pause(people, draw.between(1, 1500));
      await editGroup(people);
      await pause(people, draw.between(1, 4000));
    }
    await slow;
  },
  /** Once a zone has been recorded, StatefulSets are listed for a while as they were just before. */
  listsBefore: async (people) => {
    const { world, schedule } = people;
    let before: { readonly version: number; readonly until: number } | undefined;
    const end = world.store.subscribe(({ resource, object, previous }) => {
      const isRecorded = currentOf(object) !== currentOf(previous) && isReconciler(callers.getStore()?.actor ?? "");
      if (resource === "statefulsets.apps" && previous && isRecorded)
        before ??= { version: Number(object.metadata.resourceVersion) - 1, until: schedule.now() + STANDS_MS };
    });
    const lagging = disturbFor(people, PATIENCE_MS, (actor, sent) =>
      before && schedule.now() < before.until && isReconciler(actor) && isList(sent, "statefulsets")
        ? { version: before.version }
        : undefined,
    );
    await roll(people);
    await lagging;
    end();
  },
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
      freeze(people, 2000);
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
  /** The pods of a group that is ready cannot be read as it gets another template. */
  unread: async (people) => {
    const { draw, shape } = people;
    await settled(people);
    const refused = disturbFor(people, 50_000, (actor, sent) =>
      isReconciler(actor) && isList(sent, "pods") ? { isRefused: true } : undefined,
    );
    await pause(people, draw.between(1, 5000));
    await roll(people, newImage(people), [draw.of(shape.zones)]);
    await refused;
  },
  /**
   * As the last zone has been recorded, the reconciler is killed; the next one has to read all pods, by what somebody has
   * taken from their Lease, and cannot.
   */
  unreadAtEnd: async (people) => {
    const { world, shape } = people;
    await settled(people);
    await roll(people);
    if (!(await waitUntil(people, () => !areZonesSettled(world.store, shape.zones)))) return;
    if (!(await waitUntil(people, () => areZonesSettled(world.store, shape.zones), { stepMs: 1 }))) return;
    for (const process of world.processes()) if (isReconciler(process.name)) process.kill();
    const annotations = { "zonewise/resynced-through": null, "zonewise/resynced-sectors": null };
    await world.ask("human", "PATCH", LEASE_PATH, { metadata: { annotations } });
    await disturbFor(people, 100_000, (actor, sent) =>
      isReconciler(actor) && isList(sent, "pods") ? { isRefused: true } : undefined,
    );
  },
  /** A list of pods ends after its first one, as if it were whole. */
  onePod: async (people) => {
    let lists = 0;
    const cut = disturbFor(people, people.draw.between(20_000, 60_000), (_, sent) =>
      isList(sent, "pods") && lists++ % 2 === 0 ? { hasOneItem: true } : undefined,
    );
    for (const pod of podsIn(people).slice(0, 3)) {
      await pause(people, 3000);
      await drain(people, pod);
    }
    await cut;
  },
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
};

/** Most of its worlds have no other faults: what happens there is the incidents' doing. */
export const DELAYS_AREA: Area = {
  shape: ({ nodes, zones, replicas, budget, gate, evictions, ...shape }, draw) => {
    if (nodes) return undefined;
    const [isCalm, isWide] = [draw.chance(0.7), draw.chance(0.4)];
    const hasBudget = evictions !== undefined || draw.chance(0.5);
    return {
      replicas: isWide ? 5 : Math.max(replicas, 2),
      maxUnavailable: isWide ? 5 : draw.between(1, 3),
      budget: budget && hasBudget ? (isWide ? 5 : draw.between(budget, Math.max(budget, 3))) : undefined,
      labelled: draw.chance(0.4) ? draw.of(zones) : undefined,
      // Somebody who scales a zone is not refused by webhooks.
      ...(draw.chance(0.5) && { followers: false, mirrored: undefined, prepared: false, secondsBetween: 0 }),
      windows: undefined,
      gate: draw.chance(0.5) ? gate : undefined,
      troubledMs: Math.max(shape.troubledMs, TROUBLED_MS),
      actions: Math.min(shape.actions, ACTIONS),
      ...(isCalm && { faults: NO_FAULTS, firstCalls: undefined, answers: undefined }),
    };
  },
  incidents: INCIDENTS,
  /**
   * Pods of two zones of which one container works wait for each other for good, and for a person. Once all has long been
   * settled, a field of a zone changes that makes no pods.
   */
  async setRight(people) {
    for (const pod of podsIn(people))
      if (podOf(people, pod)?.metadata.annotations?.["sim/crash"] === "last")
        await annotatePod(people, pod, { "sim/crash": null });
    await waitUntil(people, () => areZonesSettled(people.world.store, people.shape.zones), {
      ms: 240_000,
      stepMs: 1000,
    });
    // The oracles take no lost call for a reason any more.
    await pause(people, QUIET_MS);
    // Nobody sees it before its controller.
    freeze(people, 1000);
    await changeRetention(people);
    await pause(people, STANDS_MS);
  },
};
