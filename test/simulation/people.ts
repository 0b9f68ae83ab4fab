/** Humans and drainers: what they do to the world, drawn from the seed. */
import { batchActions } from "./batches/people.ts";
import { budgetActions, setBudgetRight } from "./budgets.ts";
import { dig } from "../emulator/objects.ts";
import { certificateActions } from "./certificates/people.ts";
import { checkActions, setChecksRight } from "./checks/people.ts";
import { nodeActions, setNodesRight } from "./nodes/people.ts";
import { deletionActions } from "./deletions/people.ts";
import { windowActions, windowsRight } from "./windows/people.ts";
import type { Draw } from "./draw.ts";
import { GROUP, NAMESPACE } from "./names.ts";
import {
  type Action,
  afflict,
  annotatePod,
  changeTemplate,
  drain,
  insist,
  pause,
  type People,
  PODS,
  podsOf,
  recreate,
  scaleZone,
  SETS,
  TEMPLATES_PATH,
} from "./person.ts";
import { BURST_MS, type Shape, zoneObject } from "./shape.ts";

async function inEachZone(people: People, act: (zone: string) => Promise<unknown>): Promise<void> {
  for (const zone of people.shape.zones) {
    await act(zone);
    if (people.draw.chance(0.1)) await pause(people, people.draw.between(1, 5000));
  }
}

/** One pod is ill for a while, by its annotation. */
async function afflictAny(people: People, name: string, value: string): Promise<void> {
  const pods = podsOf(people);
  const { draw } = people;
  if (pods.length > 0) await afflict(people, draw.of(pods), [name, value], draw.between(1, draw.of([20_000, 240_000])));
}

/** Changes its mind again and again, as a HorizontalPodAutoscaler does. */
async function autoscale(people: People): Promise<void> {
  const { draw, shape, world } = people;
  for (let i = draw.between(1, 4); i > 0; i--) {
    const replicas = drawReplicas(people);
    if (shape.mirrored)
      await world.ask("autoscaler", "PATCH", `${TEMPLATES_PATH}/${GROUP}/scale`, { spec: { replicas } });
    else await scaleZone(people, shape.zones[0] ?? "", replicas, 1);
    await pause(people, draw.between(1000, draw.of([15_000, 90_000])));
  }
}

/** Mostly fewer: a zone grows without a question. */
const drawReplicas = ({ draw, shape }: People): number =>
  draw.chance(0.6) ? draw.between(0, Math.max(0, shape.replicas - 1)) : draw.between(0, shape.replicas + 2);

const ACTIONS: Readonly<Record<string, Action>> = {
  newImage: (people) => {
    const image = `app:${people.draw.between(1, people.draw.of([3, 1000]))}`;
    return inEachZone(people, (zone) => changeTemplate(people, zone, image, false));
  },
  crashingImage: (people) => {
    const image = `app:bad-${people.draw.between(1, 3)}`;
    return inEachZone(people, (zone) => changeTemplate(people, zone, image, true));
  },
  scale: async (people) => {
    const { draw, shape } = people;
    if (shape.mirrored || shape.followers ? draw.chance(0.8) : draw.chance(0.2)) return await autoscale(people);
    const replicas = drawReplicas(people);
    const zones = shape.followers ? shape.zones.slice(0, 1) : shape.zones;
    return await Promise.all(zones.map((zone) => scaleZone(people, zone, replicas)));
  },
  deletePod: async (people) => {
    const pods = podsOf(people);
    if (pods.length > 0) await people.world.ask("human", "DELETE", `${PODS}/${people.draw.of(pods)}`);
  },
  evict: async (people) => {
    const { draw, world } = people;
    const pods = podsOf(people);
    if (pods.length === 0) return;
    const name = draw.of(pods);
    const uid = world.store.get("pods", NAMESPACE, name)?.metadata.uid;
    const isDry = draw.chance(0.25);
    const deleteOptions = draw.chance(0.2) ? { preconditions: { uid } } : isDry ? { dryRun: ["All"] } : undefined;
    const query = isDry && draw.chance(0.5) ? "?dryRun=All" : "";
    // Whoever only tries tries all: nothing goes.
    const tried = deleteOptions && "dryRun" in deleteOptions ? pods : [name];
    await Promise.all(tried.map((pod) => drain(people, pod, query, deleteOptions)));
  },
  /** Nodes of one or several zones are drained at once. */
  evictMany: async (people) => {
    const { draw, shape } = people;
    const zones = draw.chance(0.4) ? [draw.of(shape.zones)] : shape.zones;
    const ordinal = draw.chance(0.3) ? `-${(shape.firstOrdinal ?? 0) + draw.below(shape.replicas)}` : "";
    const isOf = (pod: string): boolean => zones.some((zone) => pod.startsWith(zone)) && pod.endsWith(ordinal);
    await Promise.all(
      podsOf(people)
        .filter(isOf)
        .map((pod) => drain(people, pod)),
    );
  },
  failProbe: (people) => afflictAny(people, "sim/ready", "false"),
  crashPod: (people) => afflictAny(people, "sim/crash", "true"),
  pauseZone: async (people) => {
    const path = `${SETS}/${people.draw.of(people.shape.zones)}`;
    const annotate = (value: string | null): Promise<void> =>
      insist(people, path, { metadata: { annotations: { "grafana.com/rollout-paused": value } } });
    await annotate("true");
    await pause(people, people.draw.between(1000, 60_000));
    await annotate(null);
  },
  /** Its pods go, or stay as orphans; it comes back as it was written. */
  deleteSet: async (people) => {
    const { draw, shape, world } = people;
    const zone = draw.of(shape.zones);
    const propagationPolicy = draw.of(["Background", "Orphan", "Foreground"]);
    await world.ask("human", "DELETE", `${SETS}/${zone}`, { propagationPolicy });
    await pause(people, draw.between(1, 20_000));
    await recreate(people, SETS, zoneObject(shape, zone));
  },
  killProcess: (people) => {
    const running = people.world.processes();
    if (running.length > 0) people.draw.of(running).kill();
    return Promise.resolve();
  },
  freezeProcess: (people) => {
    const running = people.world.processes();
    if (running.length > 0) people.draw.of(running).freeze(people.draw.of([2000, 20_000, 60_000]));
    return Promise.resolve();
  },
};

/** How many times as often as others these actions happen. */
const OFTEN: Readonly<Record<string, number>> = {
  newImage: 3,
  scale: 4,
  evict: 2,
  evictMany: 2,
  afflictUpdated: 4,
  deletePods: 4,
  takePods: 2,
};

/** What each world with these parts has beside what it draws. */
const alwaysIn = ({ deletions }: Shape): readonly string[] =>
  deletions ? ["deletePods", "deletePods", "deleteByHand", "tryDeletion", "takePods", "takePods"] : [];

const actionsOf = (people: People): Readonly<Record<string, Action>> => ({
  ...ACTIONS,
  ...budgetActions(people),
  ...certificateActions(people),
  ...checkActions(people),
  ...nodeActions(people),
  ...(people.shape.windows && windowActions),
  ...(people.shape.accelerates && batchActions),
  ...(people.shape.deletions && deletionActions),
});

export interface SetActions {
  /** As the seed drew it: the actions and their times follow from it, also if less of it is played. */
  readonly drawn: Shape;
  /** Positions of the actions that are played; all of them if undefined. */
  readonly only: ReadonlySet<number> | undefined;
  readonly onAction: (position: number, name: string) => void;
}

/**
 * Sets the actions of the troubled time, all begun before it ends. Returns a function that resolves once those that
 * were begun have ended.
 */
export function setActions(people: People, { drawn, only, onAction }: SetActions): () => Promise<unknown> {
  const { schedule, draw, shape } = people;
  const begun: Promise<unknown>[] = [];
  const actions = actionsOf({ ...people, shape: drawn });
  const names = Object.keys(actions).flatMap((name) => Array<string>(OFTEN[name] ?? 1).fill(name));
  const set = (i: number, name: string, ms: number): void => {
    if (ms > shape.troubledMs || (only && !only.has(i))) return;
    schedule.after(ms, () => {
      onAction(i, name);
      if (actions[name]) begun.push(actions[name](people));
    });
  };
  for (let i = 0; i < drawn.actions; i++) {
    const isRollout = i === 0 && draw.chance(0.7);
    const name = isRollout ? "newImage" : draw.of(names);
    set(i, name, isRollout ? (drawn.bursts[0] ?? 0) : drawTime(draw, drawn));
  }
  for (const [i, name] of alwaysIn(drawn).entries()) set(drawn.actions + i, name, drawTime(draw, drawn));
  return () => Promise.all(begun);
}

/** Most happens in bursts. */
function drawTime(draw: Draw, { bursts, troubledMs }: Shape): number {
  const at = draw.of(bursts) + draw.below(BURST_MS);
  return draw.chance(0.7) ? Math.min(at, troubledMs) : draw.between(2000, troubledMs);
}

/** The end of the trouble: a good template, no pause, whole pods, enough of them. */
export async function setRight(people: People): Promise<void> {
  const { world, shape } = people;
  for (const zone of shape.zones) {
    await changeTemplate(people, zone, "app:last", false);
    await insist(people, `${SETS}/${zone}`, { metadata: { annotations: { "grafana.com/rollout-paused": null } } });
  }
  for (const pod of podsOf(people))
    if (world.store.get("pods", NAMESPACE, pod)?.metadata.annotations?.["sim/ready"] !== undefined)
      await annotatePod(people, pod, { "sim/ready": null });
  await growAlike(people);
  await setBudgetRight(people);
  await setChecksRight(people);
  await setNodesRight(people);
  await windowsRight(people);
}

/** By partition, a pod without peers in other zones waits until it has them. Followers and mirrors get them by themselves. */
async function growAlike(people: People): Promise<void> {
  const { world, shape } = people;
  if (!shape.partitioned || shape.budget === undefined || shape.mirrored || shape.followers) return;
  const sizes = shape.zones.map((zone) =>
    Number(dig(world.store.get("statefulsets.apps", NAMESPACE, zone), "spec", "replicas") ?? 0),
  );
  const spec = { replicas: Math.max(...sizes) };
  for (const zone of shape.zones) await insist(people, `${SETS}/${zone}`, { spec });
}
