/**
 * Reads the pods of single nodes: whether they could be drained now, and whether the work has come back. Objects that
 * several nodes share are read once a pass.
 */
import type { Source } from "../../../infra/kubernetes/context.ts";
import type { Call } from "../../../infra/kubernetes/cluster.ts";
import { absent } from "../../../infra/errors.ts";
import { ownValue } from "../../../infra/json.ts";
import { once } from "../../../infra/once.ts";
import {
  type Controller,
  daemonSets,
  nodes,
  podDisruptionBudgets,
  pods,
  type PodDisruptionBudget,
  replicaSets,
  type Resource,
  statefulSets,
} from "../../../infra/kubernetes/resources.ts";
import { livingReservations, presentIn } from "../../budget/reservation.ts";
import { selectsLabels } from "../../budget/zpdb.ts";
import { gatherOrphans, gatherZones, readAll } from "../../snapshot/gather.ts";
import { groupKey, type Zone } from "../../model/zone.ts";
import {
  canTakeOver,
  type CoreBudget,
  type Covered,
  mayHavePodsHere,
  whyHeldByRollout,
  whyNotDrainable,
  whyOneByOne,
} from "../drainable.ts";
import { readNode, type UpdateNode } from "../node.ts";
import { type NodePod, readNodePod, whyUnfit, whyWorkMissing, type WorkloadNow } from "../node-pod.ts";
import type { Workload } from "../policy.ts";
import type { NodeReading } from "../snapshot.ts";
import {
  gatherUnderBudget,
  listBudgets,
  type ListedBudget,
  openReservationStore,
} from "../../budget/act/budget-store.ts";

interface ReadRequest {
  readonly node: string;
  /** Controllers whose pods were drained from it. */
  readonly drained: readonly Workload[];
}

/** Rejects with the error of the API server. */
export type ReadPods = (request: ReadRequest) => Promise<NodeReading>;

interface PodReaderSource extends Source {
  /** Milliseconds since the epoch. */
  readonly now: number;
  readonly call: Call;
}

/** Nodes have pods of any namespace, whatever this installation rolls out. */
const ALL_NAMESPACES = [""];

/** Reads for one pass. */
export function createPodReader(source: PodReaderSource): ReadPods {
  const { now, call } = source;
  const budgetsOf = once((namespace: string) => listBudgets(namespace, source, call));
  const zones = once(async () => [...(await gatherZones(ALL_NAMESPACES, source, call)).groups.values()].flat());
  const coreBudgets = once(
    async () =>
      (await readAll({ resource: podDisruptionBudgets, query: {}, read: readCoreBudget }, source, call)).items,
  );
  /** Every node of the cluster: pods may go to any. */
  const allNodes = once(
    async () =>
      (await readAll({ resource: nodes, query: {}, read: (one) => readNode(one, undefined) }, source, call)).items,
  );
  /** The nodes that take pods of the node. */
  const findOthers = async (name: string): Promise<readonly UpdateNode[]> => {
    const all = await allNodes();
    const own = all.find((one) => one.name === name);
    return own ? all.filter((other) => canTakeOver(own, other)) : [];
  };
  const coverOf = once(
    (budget: ListedBudget) => readCovered(budget, source),
    ({ ref }) => ref.uid,
  );

  const orphansOf = once(
    (group: readonly Zone[]) => gatherOrphans(group, source),
    ([first]) => (first ? groupKey(first) : ""),
  );
  const whyRolloutHolds = async (leaving: readonly NodePod[]): Promise<string | undefined> => {
    const all = await zones();
    const here = [...Map.groupBy(all, groupKey)].filter(([, group]) => mayHavePodsHere(leaving, group));
    const orphans = await Promise.all(here.map(async ([key, group]) => [key, await orphansOf(group)] as const));
    return whyHeldByRollout(leaving, all, new Map(orphans));
  };

  return async ({ node, drained }) => {
    const query = { fieldSelector: `spec.nodeName=${node}` };
    const { items } = await readAll({ resource: pods, query, read: readNodePod }, source, call);
    const budgets = (await Promise.all([...new Set(items.map(({ namespace }) => namespace))].map(budgetsOf))).flat();
    const touched = budgets.filter((budget) => items.some((pod) => selects(budget, pod)));
    const coverage = await Promise.all(touched.map(async (budget) => [budget.ref.uid, await coverOf(budget)] as const));
    const facts = { now, pods: items, budgets, covered: new Map(coverage), coreBudgets: await coreBudgets() };
    const owners = await readOwners(items, source);
    const after = await Promise.all(
      drained.map(async (before) => [before, await readWorkload(before, source)] as const),
    );
    return {
      obstacle: whyNotDrainable(facts),
      unfit: whyUnfit(items),
      rollout: await whyRolloutHolds(items.filter(({ evictable }) => evictable)),
      missing: whyWorkMissing({ pods: items, owners, drained: after }),
      workloads: workloadsOf(items, owners),
      others: items.some(({ evictable }) => evictable) ? await findOthers(node) : undefined,
      oneByOne: whyOneByOne(facts),
    };
  };
}

const selects = (budget: ListedBudget, pod: NodePod): boolean =>
  pod.evictable &&
  budget.ref.namespace === pod.namespace &&
  selectsLabels(budget, pod.labels) &&
  !("problem" in budget.content);

async function readCovered({ content, object }: ListedBudget, source: PodReaderSource): Promise<Covered> {
  if ("problem" in content) return { zones: [], reservations: {} };
  const { reservations: stored } = await openReservationStore(source.cluster, object, source.call);
  const { zones, pods: seen } = await gatherUnderBudget(content, source, source.call);
  return { zones, reservations: livingReservations(stored, presentIn(zones, seen.values()), source.now) };
}

function readCoreBudget({ metadata = {}, spec, status }: PodDisruptionBudget): CoreBudget {
  return {
    namespace: metadata.namespace ?? "",
    name: metadata.name ?? "",
    selector: spec?.selector,
    disruptionsAllowed: status?.disruptionsAllowed ?? 0,
  };
}

/** The controllers of pods, as far as their kind is known, by UID. */
async function readOwners(items: readonly NodePod[], source: PodReaderSource): Promise<Map<string, WorkloadNow>> {
  const byUid = new Map(
    items.flatMap(({ namespace, controller, owner }) =>
      controller && owner !== undefined ? [[owner, { ...controller, namespace }]] : [],
    ),
  );
  return new Map(
    await Promise.all([...byUid].map(async ([uid, one]) => [uid, await readWorkload(one, source)] as const)),
  );
}

/** Kinds of controllers whose pods are expected to come back. */
const KINDS: Readonly<Record<string, Resource<Controller>>> = {
  StatefulSet: statefulSets,
  ReplicaSet: replicaSets,
  DaemonSet: daemonSets,
};

async function readWorkload(
  { kind, namespace, name }: Pick<Workload, "kind" | "namespace" | "name">,
  { cluster, call }: PodReaderSource,
): Promise<WorkloadNow> {
  const resource = ownValue(KINDS, kind);
  const found = resource && (await cluster.get(resource, { namespace, name }, call).catch(absent));
  return found && { kind, namespace, name, uid: found.metadata?.uid ?? "", ...readCounts(found) };
}

function readCounts({ spec, status = {} }: Controller): { readonly desired: number; readonly ready: number } {
  const { readyReplicas, numberReady = 0, desiredNumberScheduled = 1 } = status;
  return { desired: spec?.replicas ?? desiredNumberScheduled, ready: readyReplicas ?? numberReady };
}

function workloadsOf(items: readonly NodePod[], owners: ReadonlyMap<string, WorkloadNow>): Workload[] {
  const drained = new Set(items.filter(({ evictable }) => evictable).map(({ owner = "" }) => owner));
  return [...owners].flatMap(([uid, now]) => {
    if (!now || !drained.has(uid)) return [];
    const { kind, namespace, name, ready } = now;
    return [{ kind, namespace, name, uid, ready }];
  });
}
