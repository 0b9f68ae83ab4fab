/**
 * One StatefulSet on a small cluster, its PhasedRollout and Prometheus, for the properties of a phased rollout.
 */
import { type ReleaseFields, keepPartition } from "../../../functions/phased/raise-partition.ts";
import type { CheckVerdict } from "../../../reconciler/checks/check.ts";
import { ANNOTATIONS } from "../../../reconciler/model/annotations.ts";
import { STATEFUL_SETS, type Pod, type StatefulSet } from "../../emulator/controllers/objects.ts";
import { REVISIONS } from "../../emulator/controllers/statefulset/revisions.ts";
import { dig, put, type KubeObject } from "../../emulator/objects.ts";
import { add, amend } from "../../builders/objects.ts";
import { data, empty, NOW, rolloutObject, unreachable } from "../../builders/phased.ts";
import { createSmallCluster, imageOf, NAMESPACE, ordinalOf, type SmallCluster } from "../small-cluster.ts";
import { decide, type Facts, HELD, judge, type PhasedDecision, type PhasedStatus } from "./adapter.ts";

export const THRESHOLD = 2;
const PHASED = "phasedrollouts.sts.plus";

export interface World {
  readonly cluster: SmallCluster;
  prometheus: "quiet" | "firing" | "down";
  /** Writes of users pass the admission of StatefulSets (§16.9). */
  readonly guarded: boolean;
  /**
   * The pods of the managed StatefulSet that its controller has replaced by another template than the current one, by
   * `releaseKey`.
   */
  readonly replaced: string[];
  /** Those that it has made by another template than the current one. */
  readonly made: string[];
}

interface Traits {
  readonly replicas: number;
  readonly ordered: boolean;
  /** `spec.updateStrategy.rollingUpdate.maxUnavailable`, with the feature MaxUnavailableStatefulSet. */
  readonly maxUnavailable?: number;
  readonly finalCheck?: boolean;
  readonly guarded?: boolean;
}

export function createWorld({ replicas, ordered, maxUnavailable, finalCheck = false, guarded = false }: Traits): World {
  const cluster = createSmallCluster(NOW);
  cluster.addSet({ name: "db", group: "", replicas });
  const labels = {};
  cluster.store.update(STATEFUL_SETS, put(cluster.set("db"), ["metadata", "labels"], labels));
  cluster.change("db", {
    podManagementPolicy: ordered ? "OrderedReady" : "Parallel",
    updateStrategy: {
      type: "RollingUpdate",
      rollingUpdate: { partition: 0, ...(maxUnavailable && { maxUnavailable }) },
    },
  });
  cluster.settle();
  const check = { initialDelaySeconds: 10, periodSeconds: 10, successThreshold: THRESHOLD };
  const { spec } = rolloutObject({ spec: { finalCheck }, check });
  add(cluster.store, "PhasedRollout", "guard", { namespace: NAMESPACE, spec: spec as object });
  return { cluster, prometheus: "quiet", guarded, replaced: [], made: [] };
}

/** Its PhasedRollout. */
export function rolloutOf({ cluster }: World): KubeObject & { readonly status?: PhasedStatus } {
  const found = cluster.store.get(PHASED, NAMESPACE, "guard");
  if (!found) throw new Error("there is no PhasedRollout");
  return found;
}

/** Whether a user lets it roll without checks, or has paused it. */
export const wishesOf = (world: World) => ({
  skipCheck: dig(rolloutOf(world), "spec", "skipCheck") === true,
  paused: rolloutOf(world).metadata.annotations?.["sts.plus/pause"] === "true",
});

/** The StatefulSet in numbers: its templates and revisions are those of the images `app:0`, `app:1`... */
export interface SetFacts {
  readonly uid: string;
  readonly version: string;
  readonly replicas: number;
  readonly partition: number;
  readonly template: number;
  readonly rolls: boolean;
  readonly owner: string | undefined;
  /** The revisions in its status. */
  readonly current: number;
  readonly update: number;
  /** By their indexes. */
  readonly pods: ReadonlyMap<number, Pod>;
}

export const numberOf = (from: Parameters<typeof imageOf>[0]): number => Number(imageOf(from).slice("app:".length));

export function setOf({ cluster }: World): SetFacts {
  const { metadata, spec, status } = cluster.set("db");
  const revision = (name = ""): number => {
    const template = dig(cluster.store.get(REVISIONS, NAMESPACE, name), "data", "spec", "template");
    return template === undefined ? NaN : numberOf(template as StatefulSet["spec"]["template"]);
  };
  return {
    uid: metadata.uid,
    version: metadata.resourceVersion,
    replicas: spec.replicas ?? 0,
    partition: spec.updateStrategy?.rollingUpdate?.partition ?? 0,
    template: numberOf(spec.template),
    rolls: spec.updateStrategy?.type === "RollingUpdate",
    owner: metadata.annotations?.[ANNOTATIONS.phasedRollout],
    current: revision(status?.currentRevision),
    update: revision(status?.updateRevision),
    pods: new Map(cluster.podsOf("db").map((pod) => [ordinalOf(pod), pod])),
  };
}

/** A pod of the StatefulSet, and the template that it gets. */
export const releaseKey = ({ uid, template }: SetFacts, index: number): string => `${uid} r${template} ${index}`;

/** One sync of the StatefulSet controller; notes the pods that it replaces and makes. */
export function sync(world: World): void {
  const before = setOf(world);
  world.cluster.sync("db");
  if (before.owner === undefined || !before.rolls) return;
  const { current, pods } = setOf(world);
  // The controller knows by its last status, and at first by the template, which revision is the current one.
  const known = Number.isNaN(before.current) ? current : before.current;
  const isTerminating = (pod: Pod | undefined): boolean => pod?.metadata.deletionTimestamp !== undefined;
  for (let index = 0; index < before.replicas; index++) {
    const [was, is] = [before.pods.get(index), pods.get(index)];
    const isReplaced = was && !isTerminating(was) && (!is || isTerminating(is));
    if (isReplaced && known !== before.template) world.replaced.push(releaseKey(before, index));
    if (!was && is && numberOf(is) !== known) world.made.push(releaseKey(before, index));
  }
}

export function runKubelets({ cluster }: World): void {
  for (const { metadata } of cluster.podsOf("db")) {
    if (cluster.lifeOf(cluster.pod(metadata.name)) === "failed") cluster.ail(metadata.name, "ready");
    cluster.runOut(metadata.name);
  }
}

/** Pods that are broken at a revision that is still wanted come up: nobody could roll out otherwise. */
export function heal(world: World): void {
  const { template, current, pods } = setOf(world);
  for (const pod of pods.values())
    if (world.cluster.lifeOf(pod) === "crashing" && [template, current].includes(numberOf(pod)))
      world.cluster.ail(pod.metadata.name, "ready");
}

const ROLLING = ["spec", "updateStrategy", "rollingUpdate"];
const UNCLAIMED = { [ANNOTATIONS.phasedRollout]: undefined, [ANNOTATIONS.originalPartition]: undefined };

type Edit = (set: StatefulSet) => StatefulSet;

const template = (number: number): Edit => {
  const containers = [
    { name: "c", image: `app:${number}` },
    { name: "d", image: "sidecar:1" },
  ];
  return (set) => put(set, ["spec", "template", "spec", "containers"], containers);
};
const next = (world: World, by = 1): Edit => template(Math.max(0, setOf(world).template + by));
const more: Edit = (set) => put(set, ["spec", "replicas"], Math.min(6, (set.spec.replicas ?? 0) + 1));
const part =
  (to: number): Edit =>
  (set) =>
    put(set, [...ROLLING, "partition"], to);
const strategy =
  (type: string): Edit =>
  (set) =>
    put(set, ["spec", "updateStrategy"], { ...set.spec.updateStrategy, type });
const unclaim =
  ({ cluster }: World): Edit =>
  (set) =>
    put(set, ["metadata", "annotations"], cluster.merge(set, UNCLAIMED));

/** By a whole StatefulSet, which admission judges. */
function change({ cluster, guarded }: World, edit: Edit): void {
  const before = cluster.set("db");
  const after = edit(before);
  const isClaimed = before.metadata.annotations?.[ANNOTATIONS.phasedRollout] !== undefined;
  const kept = guarded && isClaimed ? keepPartition(fieldsOf(before), fieldsOf(after)) : undefined;
  const { annotations } = before.metadata;
  const corrected = put(put(after, [...ROLLING, "partition"], kept), ["metadata", "annotations"], annotations);
  cluster.store.update(STATEFUL_SETS, kept === undefined ? after : corrected);
}

const ask = (
  { cluster }: World,
  wish: { readonly annotations?: Record<string, string>; readonly spec?: object },
): void => amend(cluster.store, "PhasedRollout", "guard", { namespace: NAMESPACE, ...wish });
const pausing = (paused: boolean) => ({ annotations: { "sts.plus/pause": String(paused) } });

const podAt = (world: World, at: number): string => `db-${at % Math.max(1, setOf(world).replicas)}`;

/** Changes by others; `at` picks a pod. */
const MOVES = {
  advance: (world) => {
    for (const each of ["sync", "kubelets", "sync", "wait"] as const) happen(each, world, 0);
  },
  sync: (world) => sync(world),
  kubelets: (world) => runKubelets(world),
  wait: ({ cluster }) => cluster.elapse(10_000),
  deploy: (world) => change(world, next(world)),
  revert: (world) => change(world, next(world, -1)),
  // By the subresource, as kubectl scale and autoscalers do: admission sees no StatefulSet.
  scaleUp: (world) => world.cluster.change("db", { replicas: Math.min(6, setOf(world).replicas + 1) }),
  scaleDown: (world) => world.cluster.change("db", { replicas: Math.max(1, setOf(world).replicas - 1) }),
  applyMore: (world) => change(world, more),
  deployMore: (world) => change(world, (set) => next(world)(more(set))),
  wipePartition: (world) => setOf(world).rolls && change(world, part(0)),
  raisePartition: (world) => setOf(world).rolls && change(world, part(Math.min(HELD, setOf(world).partition + 1))),
  lowerPartition: (world, at) => setOf(world).rolls && change(world, part(Math.min(setOf(world).partition, at))),
  replace: (world) => change(world, (set) => unclaim(world)(part(0)(strategy("RollingUpdate")(set)))),
  unclaim: (world) => change(world, unclaim(world)),
  break: (world, at) => world.cluster.ail(podAt(world, at), "crashing"),
  stumble: (world, at) => {
    const { cluster } = world;
    const name = podAt(world, at);
    if (cluster.lifeOf(cluster.pod(name)) === "ready") cluster.ail(name, "failed");
  },
  fire: (world) => void (world.prometheus = "firing"),
  clear: (world) => void (world.prometheus = "quiet"),
  lose: (world) => void (world.prometheus = "down"),
  pause: (world) => ask(world, pausing(true)),
  resume: (world) => ask(world, pausing(false)),
  suspend: (world) => ask(world, { spec: { skipCheck: true } }),
  unsuspend: (world) => ask(world, { spec: { skipCheck: false } }),
  onDelete: (world) => change(world, (set) => part(0)(strategy("OnDelete")(set))),
  rollingUpdate: (world) => change(world, strategy("RollingUpdate")),
  recreate: ({ cluster }) => {
    for (const pod of cluster.podsOf("db"))
      cluster.store.remove("pods", NAMESPACE, pod.metadata.name, { gracePeriodSeconds: 0 });
    recreate(cluster, (set) => set);
  },
  // Beside the pods, with another template.
  remake: (world) => {
    const { cluster } = world;
    for (const pod of cluster.podsOf("db"))
      cluster.store.update("pods", put(pod, ["metadata", "ownerReferences"], undefined));
    recreate(cluster, next(world));
  },
} as const satisfies Record<string, (world: World, at: number) => unknown>;
export type Happening = keyof typeof MOVES;
export const HAPPENINGS = Object.keys(MOVES) as Happening[];

export const happen = (what: Happening, world: World, at: number): unknown => MOVES[what](world, at);

const fieldsOf = ({ spec }: StatefulSet): ReleaseFields => ({
  template: numberOf(spec.template),
  replicas: spec.replicas ?? 0,
  firstOrdinal: 0,
  rolls: spec.updateStrategy?.type === "RollingUpdate",
  partition: spec.updateStrategy?.rollingUpdate?.partition ?? 0,
});

function recreate(cluster: SmallCluster, edit: Edit): void {
  const { metadata, spec } = cluster.set("db");
  cluster.store.remove(STATEFUL_SETS, NAMESPACE, "db");
  const { namespace, name } = metadata;
  const { maxUnavailable } = spec.updateStrategy?.rollingUpdate ?? {};
  const rollingUpdate = { partition: 0, ...(maxUnavailable !== undefined && { maxUnavailable }) };
  const fresh = {
    apiVersion: "apps/v1",
    kind: "StatefulSet",
    metadata: { namespace, name },
    spec: { ...spec, updateStrategy: { type: "RollingUpdate", rollingUpdate } },
    status: { replicas: 0 },
  } as unknown as StatefulSet;
  cluster.store.create(STATEFUL_SETS, edit(fresh));
}

/** What a tick would gather. */
export const factsOf = (world: World): Facts => ({
  now: world.cluster.now(),
  rollout: rolloutOf(world),
  statefulSet: world.cluster.set("db"),
  pods: world.cluster.podsOf("db"),
});

/** The decision of a tick, and what it took Prometheus' answer for, if it asked. */
export function decideNext(world: World): { readonly decision: PhasedDecision; readonly verdict?: CheckVerdict } {
  const facts = factsOf(world);
  const decision = decide(facts);
  if (decision.action !== "check") return { decision };
  const answer = { quiet: empty, firing: data, down: unreachable }[world.prometheus];
  return { decision: decide({ ...facts, answer }), verdict: judge(facts.rollout, answer) };
}

/** One decision, carried out. */
export function tick(world: World): PhasedDecision {
  const read = versionsOf(world);
  const { decision } = decideNext(world);
  carryOut(decision, world, read);
  return decision;
}

/** The versions of the StatefulSet, and of the PhasedRollout. */
export const versionsOf = (world: World) => ({
  set: setOf(world).version,
  rollout: rolloutOf(world).metadata.resourceVersion,
});

/** Carries out a decision, if what it writes to is as it was read; false for a conflict. */
export function carryOut(decision: PhasedDecision, world: World, read: ReturnType<typeof versionsOf>): boolean {
  const { cluster } = world;
  const now = versionsOf(world);
  const ofRollout = ["addFinalizer", "dropFinalizer", "report"].includes(decision.action);
  if (ofRollout ? now.rollout !== read.rollout : now.set !== read.set) return false;
  switch (decision.action) {
    case "addFinalizer":
      cluster.store.update(PHASED, put(rolloutOf(world), ["metadata", "finalizers"], ["sts.plus/finalizer"]));
      return true;
    case "report":
      cluster.store.update(PHASED, { ...rolloutOf(world), status: decision.status });
      return true;
    case "claim": {
      const { original } = decision;
      cluster.annotate("db", {
        [ANNOTATIONS.phasedRollout]: "guard",
        ...(original !== undefined && { [ANNOTATIONS.originalPartition]: String(original) }),
      });
      return true;
    }
    case "setPartition":
    case "releasePod": {
      const { updateStrategy } = cluster.set("db").spec;
      const rollingUpdate = { ...updateStrategy?.rollingUpdate, partition: decision.partition };
      cluster.change("db", { updateStrategy: { type: "RollingUpdate", ...updateStrategy, rollingUpdate } });
      return true;
    }
    case "replacePod":
      cluster.remove(decision.pod.name);
      return true;
    case "releaseTarget":
    case "dropFinalizer":
    case "check":
      throw new Error(`unexpected ${decision.action}`);
    default:
      return decision satisfies never;
  }
}
