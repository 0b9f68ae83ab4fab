/** Humans and drainers: what they do to the world, drawn from the seed. */
import type { Draw } from "./draw.ts";
import type { Schedule } from "./schedule.ts";
import { BUDGET, NAMESPACE, type Shape, zoneObject } from "./shape.ts";
import type { World } from "./world.ts";

export interface People {
  readonly schedule: Schedule;
  readonly draw: Draw;
  readonly shape: Shape;
  readonly world: World;
}

const SETS = `/apis/apps/v1/namespaces/${NAMESPACE}/statefulsets`;
const PODS = `/api/v1/namespaces/${NAMESPACE}/pods`;
const BUDGETS = `/apis/rollout-operator.grafana.com/v1/namespaces/${NAMESPACE}/zoneawarepoddisruptionbudgets`;
const BOUND_MS = 120_000;
const MAX_ATTEMPTS = 30;

type Action = (people: People) => Promise<unknown>;

const pause = ({ schedule }: People, ms: number): Promise<void> =>
  new Promise((resolve) => void schedule.after(ms, resolve));

const podsOf = ({ world }: People): readonly string[] =>
  world.store.list("pods", NAMESPACE).map(({ metadata }) => metadata.name);

/** A human tries again after an error of the server. */
async function insist(people: People, path: string, patch: object): Promise<void> {
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const { status } = await people.world.ask("human", "PATCH", path, patch);
    if (status !== 0 && status < 500) return;
    await pause(people, 2000);
  }
}

const changeTemplate = (people: People, zone: string, image: string, crashes: boolean): Promise<void> =>
  insist(people, `${SETS}/${zone}`, {
    spec: {
      template: {
        metadata: { annotations: { "sim/crash": crashes ? "true" : null } },
        spec: { containers: [{ name: "main", image }] },
      },
    },
  });

async function inEachZone(people: People, act: (zone: string) => Promise<unknown>): Promise<void> {
  for (const zone of people.shape.zones) {
    await act(zone);
    if (people.draw.chance(0.1)) await pause(people, people.draw.between(1, 5000));
  }
}

const annotatePod = ({ world }: People, pod: string, annotations: object): Promise<unknown> =>
  world.ask("kubelet", "PATCH", `${PODS}/${pod}`, { metadata: { annotations } });

/** One pod is ill for a while. */
async function afflictPod(people: People, ill: object, well: object): Promise<void> {
  const pods = podsOf(people);
  if (pods.length === 0) return;
  const pod = people.draw.of(pods);
  await annotatePod(people, pod, ill);
  await pause(people, people.draw.between(1, people.draw.of([20_000, 240_000])));
  await annotatePod(people, pod, well);
}

const ACTIONS: Readonly<Record<string, Action>> = {
  newImage: (people) => {
    const image = `app:${people.draw.between(1, 6)}`;
    return inEachZone(people, (zone) => changeTemplate(people, zone, image, false));
  },
  crashingImage: (people) => {
    const image = `app:bad-${people.draw.between(1, 3)}`;
    return inEachZone(people, (zone) => changeTemplate(people, zone, image, true));
  },
  scale: async (people) => {
    const { draw, shape, world } = people;
    const replicas = draw.between(0, shape.replicas + 2);
    const zones = shape.followers ? shape.zones.slice(0, 1) : shape.zones;
    for (const zone of zones) await world.ask("human", "PATCH", `${SETS}/${zone}/scale`, { spec: { replicas } });
  },
  deletePod: async (people) => {
    const pods = podsOf(people);
    if (pods.length > 0) await people.world.ask("human", "DELETE", `${PODS}/${people.draw.of(pods)}`);
  },
  /** As kubectl drain does: again after 5 s as long as the answer is 429. */
  evict: async (people) => {
    const pods = podsOf(people);
    if (pods.length === 0) return;
    const name = people.draw.of(pods);
    const eviction = { apiVersion: "policy/v1", kind: "Eviction", metadata: { name, namespace: NAMESPACE } };
    const end = people.schedule.now() + BOUND_MS;
    while (people.schedule.now() < end) {
      const { status } = await people.world.ask("drainer", "POST", `${PODS}/${name}/eviction`, eviction);
      if (status !== 429 && status < 500) return;
      await pause(people, 5000);
    }
  },
  failProbe: (people) => afflictPod(people, { "sim/ready": "false" }, { "sim/ready": null }),
  crashPod: (people) => afflictPod(people, { "sim/crash": "true" }, { "sim/crash": null }),
  pauseZone: async (people) => {
    const path = `${SETS}/${people.draw.of(people.shape.zones)}`;
    const annotate = (value: string | null): Promise<void> =>
      insist(people, path, { metadata: { annotations: { "grafana.com/rollout-paused": value } } });
    await annotate("true");
    await pause(people, people.draw.between(1000, 60_000));
    await annotate(null);
  },
  changeBudget: async (people) => {
    const { shape, draw } = people;
    if (shape.budget === undefined) return;
    await insist(people, `${BUDGETS}/${BUDGET}`, { spec: { maxUnavailable: draw.between(0, shape.budget) } });
  },
  /** Its pods go, or stay as orphans; it comes back as it was written. */
  deleteSet: async (people) => {
    const { draw, shape, world } = people;
    const zone = draw.of(shape.zones);
    const propagationPolicy = draw.of(["Background", "Orphan", "Foreground"]);
    await world.ask("human", "DELETE", `${SETS}/${zone}`, { propagationPolicy });
    await pause(people, draw.between(1, 20_000));
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const { status } = await world.ask("human", "POST", SETS, zoneObject(shape, zone));
      if (status === 201) return;
      await pause(people, 2000);
    }
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
const NAMES = Object.keys(ACTIONS);

/**
 * Sets the actions of the troubled time, all begun before `troubledMs`; `onAction` is told of each. Returns a function
 * that resolves once those that were begun have ended.
 */
export function setActions(people: People, onAction: (name: string) => void): () => Promise<unknown> {
  const { schedule, draw, shape } = people;
  const begun: Promise<unknown>[] = [];
  for (let i = 0; i < shape.actions; i++) {
    const name = draw.of(NAMES);
    schedule.after(draw.between(2000, shape.troubledMs), () => {
      onAction(name);
      if (ACTIONS[name]) begun.push(ACTIONS[name](people));
    });
  }
  return () => Promise.all(begun);
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
  if (shape.budget !== undefined)
    await insist(people, `${BUDGETS}/${BUDGET}`, { spec: { maxUnavailable: shape.budget } });
}
