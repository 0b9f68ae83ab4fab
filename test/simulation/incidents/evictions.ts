/**
 * Evictions at rare moments: of pods whose disruption is not over, that a core budget holds back, or whose peers have
 * only just come back; and what befalls a batch, a budget or a zone meanwhile.
 */
import { fieldsOf, isTrue, put } from "../../emulator/objects.ts";
import { BUDGETS_PATH } from "../budgets.ts";
import { BUDGET, BUDGETS, GROUP, LEASES, NAMESPACE, ordinalOf, zoneOf } from "../names.ts";
import {
  type Action,
  annotatePod,
  changeTemplate,
  drain,
  insist,
  pause,
  type People,
  podOf,
  PODS,
  podsIn,
  recreate,
  replicasOf,
  scale,
  SETS,
  until,
} from "../person.ts";
import { budgetObject, delayMs, type EvictionsShape, CALM, type Shape, zoneObject } from "../shape.ts";
import { AMID_BATCH } from "./amid-batch.ts";
import { freshPeers } from "./fresh-peers.ts";
import type { Area } from "./incident.ts";

const CORE_BUDGETS = `/apis/policy/v1/namespaces/${NAMESPACE}/poddisruptionbudgets`;
const BUDGET_PATH = `${BUDGETS_PATH}/${BUDGET}`;
const HOUR_MS = 3_600_000;
/** Drains as many pods, each a little after the one before; some say which pod they mean. */
async function drainSome(people: People, pods: readonly string[]): Promise<void> {
  const { draw } = people;
  const drains: Promise<void>[] = [];
  for (const name of pods) {
    const uid = podOf(people, name)?.metadata.uid;
    drains.push(drain(people, name, "", draw.chance(0.4) ? { preconditions: { uid } } : undefined));
    await pause(people, draw.between(50, 6000));
  }
  await Promise.all(drains);
}

const ACTS = {
  ...AMID_BATCH,
  freshPeers: (people) => freshPeers(people),
  /** Several drainers want the same pod, one after the other. */
  sameAgain: async (people) => {
    const pods = podsIn(people);
    if (pods.length === 0) return;
    const name = people.draw.of(pods);
    await drainSome(people, [name, name, name]);
  },
  /** A core budget refuses what ours has allowed. */
  heldBack: async (people) => {
    const { draw, world } = people;
    const pods = podsIn(people);
    const metadata = { name: `held-${draw.below(1_000_000)}`, namespace: NAMESPACE };
    const spec = { maxUnavailable: 0, selector: { matchLabels: { app: GROUP } } };
    await world.ask("human", "POST", CORE_BUDGETS, {
      apiVersion: "policy/v1",
      kind: "PodDisruptionBudget",
      metadata,
      spec,
    });
    if (pods.length > 0) {
      const name = draw.of(pods);
      const other = draw.of(pods);
      void drainSome(people, [name, name, ...(draw.chance(0.5) ? [name] : [other])]);
      await pause(people, draw.between(20_000, 60_000));
      void drainSome(people, [name, draw.of(pods)]);
    }
    await pause(people, draw.between(20_000, draw.of([40_000, 150_000])));
    await world.ask("human", "DELETE", `${CORE_BUDGETS}/${metadata.name}`);
  },
  /** A drainer means a pod that has gone. */
  goneBefore: async (people) => {
    const pods = podsIn(people);
    if (pods.length === 0) return;
    const name = people.draw.of(pods);
    const uid = podOf(people, name)?.metadata.uid;
    await people.world.ask("human", "DELETE", `${PODS}/${name}`);
    await until(people, () => {
      const pod = podOf(people, name);
      return pod !== undefined && pod.metadata.uid !== uid;
    });
    await pause(people, people.draw.between(0, 15_000));
    await drain(people, name, "", { preconditions: { uid } });
  },
  /** A process whose clock is far ahead has reserved a pod. */
  farAhead: (people) => {
    const { world, schedule, draw, shape } = people;
    const [budget, pods] = [world.store.get(BUDGETS, NAMESPACE, BUDGET), podsIn(people)];
    const pod = pods.length > 0 ? podOf(people, draw.of(pods)) : undefined;
    if (!budget || !pod || shape.evictions?.older) return Promise.resolve();
    const { name, uid } = pod.metadata;
    const time = new Date(schedule.now() + 3 * HOUR_MS).toISOString();
    const entry = { kind: "eviction", uid, pinned: true, time, by: "ahead" };
    const status = fieldsOf(budget["status"]);
    const disruptedPods = { ...fieldsOf(status["disruptedPods"]), [name]: entry };
    world.store.update(BUDGETS, { ...budget, status: { ...status, disruptedPods } });
    return pause(people, 1000);
  },
  /** Somebody writes to the budget, and to the Lease beside it, again and again, while pods of all zones are to go. */
  contended: async (people) => {
    const { world, draw, schedule } = people;
    const end = schedule.now() + draw.between(4000, 9000);
    const everyMs = draw.of([20, 60, 200]);
    const drains = drainSome(
      people,
      podsIn(people).filter(() => draw.chance(0.5)),
    );
    for (let i = 0; schedule.now() < end; i++) {
      const budget = world.store.get(BUDGETS, NAMESPACE, BUDGET);
      const lease = world.store.get(LEASES, NAMESPACE, `zonewise-budget-${budget?.metadata.uid}`);
      for (const [resource, object] of [
        [BUDGETS, budget],
        [LEASES, lease],
      ] as const)
        if (object)
          world.store.update(resource, put(object, ["metadata", "annotations", "example.com/seen"], String(i)));
      await pause(people, everyMs);
    }
    await drains;
  },
  /** Pods of a zone serve in part, and are to be replaced. */
  inPart: async (people) => {
    const { draw, shape } = people;
    const pods = podsIn(people, draw.of(shape.zones));
    for (const name of pods) await annotatePod(people, name, { "sim/ready": "gated" });
    await pause(people, draw.between(1000, 15_000));
    const image = `app:${draw.between(100, 999)}`;
    for (const zone of shape.zones) await changeTemplate(people, zone, image, false);
    await pause(people, draw.between(20_000, 100_000));
    for (const name of pods) if (podOf(people, name)) await annotatePod(people, name, { "sim/ready": null });
  },
  /** A zone has surplus pods for a while: they serve, or never have. */
  surplus: async (people) => {
    const { draw, shape, world } = people;
    const zone = draw.of(shape.zones);
    const replicas = replicasOf(people, zone);
    const others = podsIn(people).filter((name) => zoneOf(name) !== zone);
    if (draw.chance(0.5)) {
      for (const other of shape.zones) if (other !== zone) await scale(people, other, replicas + 1);
      await until(people, () => others.every((name) => isTrue(podOf(people, `${zoneOf(name)}-${replicas}`), "Ready")));
      await scale(people, zone, replicas + 1);
      await until(people, () => podOf(people, `${zone}-${replicas}`) !== undefined);
      await annotatePod(people, `${zone}-${replicas}`, { "sim/ready": "false" });
      world.stall("statefulSets", 30_000);
      await scale(people, zone, replicas);
      const peers = podsIn(people).filter((name) => zoneOf(name) !== zone && ordinalOf(name) === replicas);
      return await drainSome(people, peers);
    }
    world.stall("statefulSets", draw.between(5000, 25_000));
    await scale(people, zone, Math.max(0, replicas - 1));
    return await drainSome(
      people,
      others.filter(() => draw.chance(0.4)),
    );
  },
  /** A zone is deleted and made again while drains of others are denied. */
  anew: async (people) => {
    const { draw, shape, world } = people;
    const zone = draw.of(shape.zones);
    void scale(people, zone, Math.max(0, replicasOf(people, zone) - 1));
    await pause(people, draw.between(50, 4000));
    await world.ask("human", "DELETE", `${SETS}/${zone}`, { propagationPolicy: "Background" });
    const drains = drainSome(
      people,
      podsIn(people)
        .filter((name) => zoneOf(name) !== zone)
        .slice(0, 3),
    );
    await recreate(people, SETS, zoneObject(shape, zone));
    await drains;
  },
} satisfies Readonly<Record<string, Action>>;

type Act = keyof typeof ACTS;

/** One of the acts that this world shows. */
const oneOf =
  (actsIn: (shape: Shape) => readonly Act[]): Action =>
  (people) =>
    ACTS[people.draw.of(actsIn(people.shape))](people);

const DRAINED: readonly Act[] = ["sameAgain", "heldBack", "goneBefore"];
const drainedIn = ({ evictions: own }: Shape): readonly Act[] =>
  own?.validating ? ["sameAgain", "heldBack", "heldBack"] : DRAINED;
const INCIDENTS: Readonly<Record<string, Action>> = {
  drained: oneOf(drainedIn),
  amidBatch: oneOf(({ windows }) => (windows ? ["frozenAmid"] : ["pausedAmid", "shrunkAmid"])),
  inPart: ACTS.inPart,
  surplus: ACTS.surplus,
  peers: oneOf((shape) => (delayMs(shape) > 0 ? ["freshPeers"] : drainedIn(shape))),
  budget: oneOf(({ evictions: own }) => (own?.older ? ["contended"] : ["contended", "farAhead"])),
  anew: ACTS.anew,
};

export const EVICTIONS_AREA: Area = {
  shape(shape, draw) {
    const partitioned = shape.partitioned || draw.chance(0.3);
    const own: EvictionsShape = {
      validating: draw.chance(0.4) && shape.certificate === undefined,
      older: draw.chance(0.2),
      delaySeconds: draw.chance(0.7) ? draw.of([30, 60]) : 0,
    };
    return {
      evictions: own,
      partitioned,
      budget: shape.budget ?? draw.between(1, 2),
      replicas: Math.max(shape.replicas, draw.between(2, 4)),
      maxUnavailable: Math.max(shape.maxUnavailable, draw.between(2, 3)),
      skewMs: draw.chance(0.6) ? Math.min(shape.skewMs, 500) : shape.skewMs,
      ...(draw.chance(0.3) && { windows: shape.windows ?? { windowed: draw.chance(0.5), removed: true } }),
      ...(draw.chance(0.5) && CALM),
    };
  },
  incidents: INCIDENTS,
  async setRight(people) {
    await insist(people, BUDGET_PATH, { spec: budgetObject(people.shape)["spec"] });
  },
};
