/** How a person acts on the world: what all actions are made of. */
import type { Draft } from "../emulator/objects.ts";
import type { Sent } from "../emulator/in-process.ts";
import type { Draw } from "./draw.ts";
import { NAMESPACE } from "./names.ts";
import type { Schedule } from "./schedule.ts";
import type { Shape } from "./shape.ts";
import type { World } from "./world.ts";

export interface People {
  readonly schedule: Schedule;
  readonly draw: Draw;
  readonly shape: Shape;
  readonly world: World;
  /** True until people stop. */
  readonly isTroubled: () => boolean;
  /** The replicas that a person last asked for, by zone. */
  readonly wanted: Map<string, number>;
}

export const SETS = `/apis/apps/v1/namespaces/${NAMESPACE}/statefulsets`;
export const TEMPLATES_PATH = `/apis/rollout-operator.grafana.com/v1/namespaces/${NAMESPACE}/replicatemplates`;
export const PODS = `/api/v1/namespaces/${NAMESPACE}/pods`;
/** For which a drain goes on. */
const BOUND_MS = 120_000;
/** A person or an autoscaler asks again for replicas that were refused. */
const REPEAT_MS = 15_000;
const MAX_ATTEMPTS = 30;
/** A finalizer waits for a reconciler. */
const GONE_MS = 600_000;

export type Action = (people: People) => Promise<unknown>;

export const pause = ({ schedule }: People, ms: number): Promise<void> =>
  new Promise((resolve) => void schedule.after(ms, resolve));

/** A human tries again after an error of the server. */
export async function insist(people: People, path: string, patch: object): Promise<void> {
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const { status } = await people.world.ask("human", "PATCH", path, patch);
    if (status !== 0 && status < 500) return;
    await pause(people, 2000);
  }
}

export const podsOf = ({ world }: People): readonly string[] =>
  world.store.list("pods", NAMESPACE).map(({ metadata }) => metadata.name);

/** A zone gets another template; one that crashes never comes up. */
export const changeTemplate = (people: People, zone: string, image: string, crashes = false): Promise<void> =>
  insist(people, `${SETS}/${zone}`, {
    spec: {
      template: {
        metadata: { annotations: { "sim/crash": crashes ? "true" : null } },
        spec: { containers: [{ name: "main", image }] },
      },
    },
  });

/** Asks once for the eviction of a pod. */
function evict({ world }: People, name: string, query = "", deleteOptions?: object) {
  const metadata = { name, namespace: NAMESPACE };
  const eviction = { apiVersion: "policy/v1", kind: "Eviction", metadata, ...(deleteOptions && { deleteOptions }) };
  return world.ask("drainer", "POST", `${PODS}/${name}/eviction${query}`, eviction);
}

/** A pod leaves its node as kubectl drain lets it: asked for again after 5 s as long as the answer is 429. */
export async function drain(people: People, name: string, query = "", deleteOptions?: object): Promise<void> {
  const end = people.schedule.now() + BOUND_MS;
  while (people.schedule.now() < end && people.isTroubled()) {
    const { status } = await evict(people, name, query, deleteOptions);
    if (status !== 429 && status < 500) return;
    await pause(people, 5000);
  }
}

export const annotatePod = ({ world }: People, pod: string, annotations: object): Promise<unknown> =>
  world.ask("kubelet", "PATCH", `${PODS}/${pod}`, { metadata: { annotations } });

/** A pod is ill for so many milliseconds, by an annotation. */
export async function afflict(
  people: People,
  pod: string,
  [name, value]: readonly [string, string],
  ms: number,
): Promise<void> {
  await annotatePod(people, pod, { [name]: value });
  await pause(people, ms);
  await annotatePod(people, pod, { [name]: null });
}

/**
 * Creates a deleted object again, once the one before is gone, unless somebody else has made a StatefulSet. Its pods may be on a node that
 * comes back only when the trouble ends: the action ends before that, and the person goes on trying.
 */
export function recreate(people: People, path: string, object: Draft): Promise<unknown> {
  const { schedule, world } = people;
  const end = schedule.now() + 2 * GONE_MS;
  const isMade = (): boolean => {
    if (path !== SETS) return false;
    const found = world.store.get("statefulsets.apps", NAMESPACE, object.metadata?.name ?? "");
    return found !== undefined && found.metadata.deletionTimestamp === undefined;
  };
  const insistOn = async (): Promise<void> => {
    while (schedule.now() < end) {
      const { status } = await world.ask("human", "POST", path, object);
      if (status === 201 || (status === 409 && isMade())) return;
      await pause(people, 2000);
    }
  };
  return Promise.race([insistOn(), pause(people, GONE_MS)]);
}

/** While a configuration of webhooks is away, which somebody applies again. */
export async function without(
  people: People,
  [plural, name]: readonly [string, string],
  act: () => Promise<unknown>,
): Promise<void> {
  const { world } = people;
  const path = `/apis/admissionregistration.k8s.io/v1/${plural}`;
  const found = world.store.get(`${plural}.admissionregistration.k8s.io`, undefined, name);
  if (!found) return;
  const { apiVersion, kind, metadata, webhooks } = found;
  await world.ask("human", "DELETE", `${path}/${name}`);
  await act();
  const { labels = {} } = metadata;
  await recreate(people, path, { apiVersion, kind, metadata: { name, labels }, webhooks });
}

/** Looks every `stepMs` whether it holds, until it does or `ms` are over. Resolves with whether it does. */
export async function until(
  people: People,
  holds: () => boolean,
  { ms = 120_000, stepMs = 200 } = {},
): Promise<boolean> {
  const end = people.schedule.now() + ms;
  while (people.schedule.now() < end && !holds()) await pause(people, stepMs);
  return holds();
}

export const isReconciler = (actor: string): boolean => actor.startsWith("reconciler-");

/** True of a request for a whole list of this kind. */
export const isList = ({ method, path }: Sent, plural: string): boolean =>
  method === "GET" && new RegExp(`/${plural}\\?(?!.*watch=)`).test(path);

/** Asks once for so many replicas. */
const scale = ({ world }: People, zone: string, replicas: number) =>
  world.ask("human", "PATCH", `${SETS}/${zone}/scale`, { spec: { replicas } });

/** As long as it is refused, and nothing else is wanted, it is asked for again. */
export async function scaleZone(people: People, zone: string, replicas: number, attempts = Infinity): Promise<void> {
  const { wanted, isTroubled } = people;
  wanted.set(zone, replicas);
  for (let attempt = 1; wanted.get(zone) === replicas && isTroubled(); attempt++) {
    const { status } = await scale(people, zone, replicas);
    if ((status >= 200 && status < 300) || attempt >= attempts) return;
    await pause(people, REPEAT_MS);
  }
}
