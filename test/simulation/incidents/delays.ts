/** What a rollout reads comes late or is not whole, just as it decides by it. */
import type { Sent } from "../../emulator/in-process.ts";
import { type Draft, put } from "../../emulator/objects.ts";
import {
  type Action,
  annotatePod,
  disturbFor,
  drain,
  freezeReconcilers,
  isList,
  isReconciler,
  killReconcilers,
  pause,
  type People,
  podOf,
  podsIn,
  recreate,
  SETS,
  until as waitUntil,
} from "../person.ts";
import { areZonesSettled } from "../oracles/stability.ts";
import { CALM } from "../shape.ts";
import type { Area } from "./incident.ts";
import {
  changeRetention,
  editGroup,
  LEASE_PATH,
  OTHER_ZONES,
  otherZone,
  QUIET_MS,
  removeOtherGroup,
} from "./leases.ts";
import { OTHER_PODS, settled, STANDS_MS } from "./other-pods.ts";
import { newImage, roll } from "./rollouts.ts";

/** Of one group alone: before each pod of a batch. */
const OF_GROUP = /rollout-group(?:=|%3D)/;
const HOUR_MS = 3_600_000;
const BUDGETS = "zoneawarepoddisruptionbudgets";
/** So long the trouble lasts at least, with so few other actions. */
const [TROUBLED_MS, ACTIONS] = [240_000, 6];

const isDeletion = ({ method, path }: Sent): boolean => method === "DELETE" && path.includes("/pods/");
const latestRun = ({ world }: People): string | undefined =>
  world.processes().findLast(({ name }) => isReconciler(name))?.name;
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
  ...OTHER_PODS,
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
  /** A group whose pods do not come up is deleted with its RolloutGroup, and comes again as it was. */
  stuckAgain: async (people) => {
    const { shape, draw } = people;
    const slow = ["spec", "template", "metadata", "annotations", "sim/ready-after-ms"];
    const make = (): Promise<unknown> =>
      Promise.all(
        OTHER_ZONES.map((zone) => recreate(people, SETS, put<Draft>(otherZone(shape, zone), slow, String(HOUR_MS)))),
      );
    await make();
    await pause(people, 80_000);
    await removeOtherGroup(people);
    await pause(people, draw.between(6000, 14_000));
    await make();
    await pause(people, STANDS_MS);
    await removeOtherGroup(people);
  },
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
   * As the last zone has been recorded, the reconciler is killed, and somebody takes from its Lease when it ticked last:
   * the next one has to read all pods, and cannot.
   */
  unreadAtEnd: async (people) => {
    const { world, shape } = people;
    await settled(people);
    await roll(people);
    if (!(await waitUntil(people, () => !areZonesSettled(world.store, shape.zones)))) return;
    if (!(await waitUntil(people, () => areZonesSettled(world.store, shape.zones), { stepMs: 1 }))) return;
    killReconcilers(people);
    const annotations = { "zonewise/totals": null };
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
      ...(isCalm && CALM),
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
    freezeReconcilers(people, 1000);
    await changeRetention(people);
    await pause(people, STANDS_MS);
  },
};
