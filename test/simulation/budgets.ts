/** What people and GitOps do with budgets, definitions and manifests. */
import type { Draft } from "../emulator/objects.ts";
import { BUDGET, BUDGETS, NAMESPACE, ROLLOUT_GROUPS } from "./names.ts";
import { type Action, insist, pause, type People, recreate, SETS } from "./person.ts";
import { budgetObject, type Shape, zoneObject } from "./shape.ts";

const BUDGETS_PATH = `/apis/rollout-operator.grafana.com/v1/namespaces/${NAMESPACE}/zoneawarepoddisruptionbudgets`;
const DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io";
const DEFINITIONS_PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const SECOND = "second";
const MAX_SYNCS = 5;
const SYNC_MS = 10_000;

const briefly = (people: People): Promise<void> =>
  pause(people, people.draw.between(1000, people.draw.of([10_000, 100_000])));

const ACTIONS: Readonly<Record<string, Action>> = {
  changeBudget: async (people) => {
    const { shape, draw } = people;
    const spec =
      shape.percent === undefined
        ? { maxUnavailable: draw.between(0, shape.budget ?? 1) }
        : { maxUnavailablePercentage: draw.between(0, shape.percent) };
    await insist(people, `${BUDGETS_PATH}/${BUDGET}`, { spec });
  },
  deleteBudget: async (people) => {
    await people.world.ask("human", "DELETE", `${BUDGETS_PATH}/${BUDGET}`);
    await briefly(people);
    await recreate(people, BUDGETS_PATH, budgetObject(people.shape));
  },
  /** As an earlier definition let it in: nothing can be decided by it. */
  breakBudget: async (people) => {
    const { store } = people.world;
    const budget = store.get(BUDGETS, NAMESPACE, BUDGET);
    if (!budget) return;
    const spec = { ...(budget["spec"] as object), podNamePartitionRegex: "([" };
    store.update(BUDGETS, { ...budget, spec });
    await briefly(people);
    await mendBudget(people);
  },
  /** A pod under two budgets is under none that can be asked. */
  doubleBudget: async (people) => {
    const budget = budgetObject(people.shape);
    await recreate(people, BUDGETS_PATH, { ...budget, metadata: { ...budget.metadata, name: SECOND } });
    await briefly(people);
    await people.world.ask("human", "DELETE", `${BUDGETS_PATH}/${SECOND}`);
  },
};

const mendBudget = (people: People): Promise<void> => {
  const { spec } = budgetObject(people.shape) as { readonly spec?: object };
  return insist(people, `${BUDGETS_PATH}/${BUDGET}`, { spec: { podNamePartitionRegex: null, ...spec } });
};

/** What goes with a definition comes back with it; RolloutGroups are the reconciler's. */
const ofDefinition = (shape: Shape): Readonly<Record<string, readonly Draft[]>> => ({
  [ROLLOUT_GROUPS]: [],
  ...(shape.budget !== undefined && { [BUDGETS]: [budgetObject(shape)] }),
});

const deleteDefinition: Action = async (people) => {
  const { world, draw, shape } = people;
  const owned = ofDefinition(shape);
  const name = draw.of(Object.keys(owned));
  const definition = world.store.get(DEFINITIONS, undefined, name);
  if (!definition) return;
  await world.ask("human", "DELETE", `${DEFINITIONS_PATH}/${name}`);
  await briefly(people);
  const { apiVersion, kind, metadata, spec } = definition;
  await recreate(people, DEFINITIONS_PATH, { apiVersion, kind, metadata: { name: metadata.name }, spec });
  for (const object of owned[name] ?? []) await recreate(people, BUDGETS_PATH, object);
};

/** GitOps writes its manifests again, with the replicas and without what others have added; a refusal is tried later. */
const applyManifests: Action = async (people) => {
  const { world, draw, shape } = people;
  const isReplace = draw.chance(0.3);
  const image = draw.chance(0.4) ? `app:${draw.between(1, 3)}` : undefined;
  for (const zone of shape.zones)
    for (let sync = 0; sync < MAX_SYNCS; sync++) {
      const stored = world.store.get("statefulsets.apps", NAMESPACE, zone);
      const manifest = withImage(zoneObject(shape, zone), image, stored);
      const status =
        stored && (await world.ask("gitops", isReplace ? "PUT" : "PATCH", `${SETS}/${zone}`, manifest)).status;
      if (status === undefined || (status >= 200 && status < 300)) break;
      await pause(people, SYNC_MS);
    }
};

/** The manifest has no other template than the cluster, unless it brings one. */
function withImage(manifest: Draft, image: string | undefined, stored: Draft | undefined): Draft {
  const own = manifest["spec"] as { readonly template: { readonly spec: object } };
  const kept = (stored?.["spec"] ?? own) as typeof own;
  const template =
    image === undefined
      ? kept.template
      : { ...own.template, spec: { ...own.template.spec, containers: [{ name: "main", image }] } };
  return { ...manifest, spec: { ...own, template } };
}

export const budgetActions = ({ shape }: People): Readonly<Record<string, Action>> => ({
  deleteDefinition,
  applyManifests,
  ...(shape.budget !== undefined && ACTIONS),
});

export async function setBudgetRight(people: People): Promise<void> {
  if (people.shape.budget !== undefined) await mendBudget(people);
}
