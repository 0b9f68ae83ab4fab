/** Who asks for evictions, and thinks better of it. */
import { NAMESPACE } from "../names.ts";
import { type Action, pause, type People, PODS, recreate } from "../person.ts";
import { EVICTION_DEFINITION, EVICTIONS, EVICTOR, isOver, OTHER, requestOf, RESPONDER, statusOf } from "./control.ts";

const DEFINITIONS_PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io";
const EVICTIONS_PATH = `/apis/lifecycle.k8s.io/v1alpha1/namespaces/${NAMESPACE}/evictions`;

const isServed = ({ world }: People): boolean => world.store.get(DEFINITIONS, undefined, EVICTIONS) !== undefined;

/** Asks for the eviction of these pods, unless somebody has. */
function request(people: People, pods: readonly string[]): readonly string[] {
  const { world, draw, schedule, shape } = people;
  if (!isServed(people)) return [];
  const responders = draw.chance(0.25) ? [OTHER, RESPONDER, EVICTOR] : [RESPONDER, EVICTOR];
  return pods.flatMap((name) => {
    const pod = world.store.get("pods", NAMESPACE, name);
    if (!pod || pod.metadata.deletionTimestamp) return [];
    const eviction = requestOf(pod, schedule.now() + (shape.evictions?.aheadMs ?? 0), responders);
    const own = String(eviction.metadata.name);
    if (!world.store.get(EVICTIONS, NAMESPACE, own)) world.store.create(EVICTIONS, eviction);
    return [own];
  });
}

/** Nobody wants it any more. */
function withdraw({ world }: People, name: string): void {
  const eviction = world.store.get(EVICTIONS, NAMESPACE, name);
  if (!eviction || isOver(statusOf(eviction))) return;
  const status = statusOf(eviction);
  const requesters = (status.requesters ?? []).map((one) => ({ ...one, intent: "Withdrawn" }));
  world.store.update(EVICTIONS, { ...eviction, status: { ...status, requesters } });
}

const podsOf = ({ world, shape }: People): readonly string[] =>
  world.store
    .list("pods", NAMESPACE)
    .filter(({ metadata }) => shape.zones.includes(metadata.labels?.["name"] ?? ""))
    .map(({ metadata }) => metadata.name);

export const requestActions: Readonly<Record<string, Action>> = {
  /** A drain asks for pods of one zone or of all, and may give up. */
  requestEvictions: async (people) => {
    const { draw, shape } = people;
    const zones = draw.chance(0.4) ? [draw.of(shape.zones)] : shape.zones;
    const pods = podsOf(people).filter((pod) => zones.some((zone) => pod.startsWith(zone)));
    const asked = request(
      people,
      pods.filter(() => draw.chance(0.5)),
    );
    if (draw.chance(0.6)) return;
    await pause(people, draw.between(1000, draw.of([10_000, 100_000])));
    for (const name of asked) withdraw(people, name);
  },
  requestLate: (people) => {
    request(
      people,
      podsOf(people).filter(() => people.draw.chance(0.4)),
    );
    return Promise.resolve();
  },
  /** Somebody deletes the object, or takes the request back. */
  cancelEviction: async (people) => {
    const { draw, world } = people;
    const open = world.store.list(EVICTIONS, NAMESPACE);
    if (open.length === 0) return;
    const { name } = draw.of(open).metadata;
    if (draw.chance(0.5)) await world.ask("human", "DELETE", `${EVICTIONS_PATH}/${name}`);
    else withdraw(people, name);
  },
  /** What is asked for goes by another way. */
  deleteRequested: async (people) => {
    const { draw, world } = people;
    const pods = podsOf(people);
    if (pods.length === 0) return;
    const name = draw.of(pods);
    request(people, [name]);
    await world.ask("human", "DELETE", `${PODS}/${name}`);
  },
  /** The feature is switched off, and on again. */
  removeKind: async (people) => {
    if (!isServed(people)) return;
    await people.world.ask("human", "DELETE", `${DEFINITIONS_PATH}/${EVICTIONS}`);
    await pause(people, people.draw.between(1000, 60_000));
    await recreate(people, DEFINITIONS_PATH, EVICTION_DEFINITION);
  },
};

/** What is open then is withdrawn, where the seed says so. */
export function setRequestsRight(people: People): void {
  if (people.shape.requests?.withdrawn !== true) return;
  for (const { metadata } of people.world.store.list(EVICTIONS, NAMESPACE)) withdraw(people, metadata.name);
}
