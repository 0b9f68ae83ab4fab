/** What people do with gates and PhasedRollouts. */
import { dig, textOf } from "../../emulator/objects.ts";
import { NAMESPACE } from "../names.ts";
import { type Action, insist, pause, type People, recreate, SETS } from "../person.ts";
import {
  GATE,
  GATE_CHECK,
  gateObject,
  GATES,
  PHASED,
  PHASED_CHECK,
  PHASED_REPLICAS,
  PHASED_ROLLOUTS,
  phasedObject,
  phasedSet,
} from "./objects.ts";

const GATES_PATH = `/apis/zonewise.dev/v1/namespaces/${NAMESPACE}/rolloutgates`;
const PHASED_PATH = `/apis/sts.plus/v1alpha1/namespaces/${NAMESPACE}/phasedrollouts`;
const gatePath = `${GATES_PATH}/${GATE}`;
const phasedPath = `${PHASED_PATH}/${PHASED}`;
const setPath = `${SETS}/${PHASED}`;

/** For a while an object is other than its user wrote it. */
async function forAWhile(people: People, path: string, other: object, own: object): Promise<void> {
  await insist(people, path, other);
  await pause(people, people.draw.between(1000, people.draw.of([20_000, 200_000])));
  await insist(people, path, own);
}

const podTemplate = (image: string, crashes = false): object => ({
  metadata: { annotations: { "sim/crash": crashes ? "true" : null } },
  spec: { containers: [{ name: "main", image }] },
});

const GATE_ACTIONS: Readonly<Record<string, Action>> = {
  /** Ask a failed gate again. */
  retryGate: (people) => {
    const identity = textOf(dig(people.world.store.get(GATES, NAMESPACE, GATE), "status", "identity")) ?? "none";
    const value = `${identity}/${people.draw.below(100)}`;
    return insist(people, gatePath, { metadata: { annotations: { "zonewise.dev/retry-gate": value } } });
  },
  observeGate: (people) => forAWhile(people, gatePath, { spec: { mode: "Observe" } }, { spec: { mode: "Enforce" } }),
  editGate: (people) => {
    const { draw, shape } = people;
    if (!shape.gate) return Promise.resolve();
    const { spec } = gateObject(
      { ...shape.gate, successThreshold: draw.between(1, 3) },
      draw.of([GATE_CHECK, `${GATE_CHECK} > 0`]),
    );
    return insist(people, gatePath, { spec });
  },
  deleteGate: async (people) => {
    const { world, draw, shape } = people;
    if (!shape.gate) return;
    await world.ask("human", "DELETE", gatePath);
    await pause(people, draw.between(1, 60_000));
    await recreate(people, GATES_PATH, gateObject(shape.gate));
  },
};

/** The step that waits goes on without its checks. */
function promoteStep(people: People): Promise<void> {
  const status = dig(people.world.store.get(PHASED_ROLLOUTS, NAMESPACE, PHASED), "status");
  const partition = dig(status, "rollingPodStatus", "partition");
  const value = `${String(dig(status, "updateRevision"))}/${String(partition)}`;
  return insist(people, phasedPath, { metadata: { annotations: { "sts.plus/promote-step": value } } });
}

const PHASED_ACTIONS: Readonly<Record<string, Action>> = {
  newDb: ({ draw, ...people }) => {
    const partition = draw.chance(0.3) && { updateStrategy: { rollingUpdate: { partition: draw.between(0, 2) } } };
    const replicas = draw.chance(0.2) && { replicas: draw.between(1, PHASED_REPLICAS + 2) };
    const template = podTemplate(`db:${draw.between(1, 6)}`, draw.chance(0.2));
    return insist({ draw, ...people }, setPath, { spec: { template, ...partition, ...replicas } });
  },
  scaleDb: ({ world, draw }) =>
    world.ask("human", "PATCH", `${setPath}/scale`, { spec: { replicas: draw.between(0, PHASED_REPLICAS + 2) } }),
  pausePhases: (people) =>
    forAWhile(
      people,
      phasedPath,
      { metadata: { annotations: { "sts.plus/pause": "true" } } },
      { metadata: { annotations: { "sts.plus/pause": null } } },
    ),
  promoteStep,
  skipCheck: (people) => forAWhile(people, phasedPath, { spec: { skipCheck: true } }, { spec: { skipCheck: null } }),
  editPhases: (people) => {
    const { draw, shape } = people;
    if (!shape.phased) return Promise.resolve();
    const expr = draw.of([PHASED_CHECK, `${PHASED_CHECK} > 0`]);
    const { spec } = phasedObject({ ...shape.phased, successThreshold: draw.between(1, 3) }, expr);
    return insist(people, phasedPath, { spec });
  },
  deletePhased: async (people) => {
    const { world, draw, shape } = people;
    if (!shape.phased) return;
    await world.ask("human", "DELETE", phasedPath);
    await pause(people, draw.between(1, 30_000));
    await recreate(people, PHASED_PATH, phasedObject(shape.phased));
  },
  deleteDb: async (people) => {
    const { world, draw, shape } = people;
    if (!shape.phased) return;
    await world.ask("human", "DELETE", setPath, { propagationPolicy: draw.of(["Background", "Orphan"]) });
    await pause(people, draw.between(1, 20_000));
    await recreate(people, SETS, phasedSet(shape.phased, draw.between(1, 6), draw.of([0, PHASED_REPLICAS])));
  },
};

export const checkActions = ({ shape }: People): Readonly<Record<string, Action>> => ({
  ...(shape.gate && GATE_ACTIONS),
  ...(shape.phased && PHASED_ACTIONS),
});

/** How long a new PhasedRollout has to claim its StatefulSet. */
const CLAIM_MS = 240_000;

/** Longer than the StatefulSet controller takes for a new template. */
const OBSERVED_MS = 10_000;

/** The gate and the PhasedRollout as their users wrote them, and a good template. */
export async function setChecksRight(people: People): Promise<void> {
  const { shape, world, schedule } = people;
  if (shape.gate) await insist(people, gatePath, { spec: gateObject(shape.gate)["spec"] });
  if (!shape.phased) return;
  const { spec } = phasedObject(shape.phased) as { readonly spec?: object };
  const annotations = { "sts.plus/pause": null, "sts.plus/promote-step": null };
  await insist(people, phasedPath, { metadata: { annotations }, spec: { ...spec, skipCheck: null } });
  const isClaimed = (): boolean =>
    world.store.get("statefulsets.apps", NAMESPACE, PHASED)?.metadata.annotations?.["sts.plus/phasedRollout"] !==
    undefined;
  for (const end = schedule.now() + CLAIM_MS; !isClaimed() && schedule.now() < end;) await pause(people, 5000);
  // One after the other: pods that a scale-out adds get the current revision, which may be one that crashes.
  await insist(people, setPath, { spec: { template: podTemplate("db:last") } });
  await pause(people, OBSERVED_MS);
  await insist(people, setPath, { spec: { replicas: PHASED_REPLICAS } });
}
