/**
 * A namespace in which nothing happens by itself: the embedded cluster's store, and its models of the StatefulSet
 * controller, the scheduler and the kubelet, each of which takes one step when it is told to.
 */
import type { ZoneWithPods } from "../../reconciler/model/zone.ts";
import { apply } from "../emulator/controllers/changes.ts";
import {
  isTerminating,
  STATEFUL_SETS,
  type Pod,
  type Revision,
  type StatefulSet,
} from "../emulator/controllers/objects.ts";
import { newMemory, runPod, type PodMemory } from "../emulator/controllers/run-pod.ts";
import { schedule } from "../emulator/controllers/schedule.ts";
import { REVISIONS } from "../emulator/controllers/statefulset/revisions.ts";
import { syncSet } from "../emulator/controllers/statefulset/sync.ts";
import { isTrue, put, type Draft, type KubeObject } from "../emulator/objects.ts";
import { createStore } from "../emulator/store.ts";
import type { GroupObjects } from "../builders/groups.ts";
import { add } from "../builders/objects.ts";
import { statefulSetObject, type ZoneTraits } from "../builders/zones.ts";
import { readGroup } from "./rollout/adapter.ts";

export const NAMESPACE = "test";

/** Steps do not wait. */
const AT_ONCE = { "sim/ready-after-ms": "0", "sim/exit-after-ms": "0" };

/** What a pod is: `starting` was never Ready, `failed` was. One container of a `limping` pod works. */
export type Life = "missing" | "starting" | "ready" | "failed" | "crashing" | "limping" | "terminating";

/** What ails a pod that its kubelet runs. */
const AILMENTS = {
  ready: {},
  failed: { "sim/ready": "false" },
  crashing: { "sim/crash": "true" },
  limping: { "sim/crash": "last" },
};

/** What a template may lack, so that its pods do not come up. */
export interface Template {
  readonly image?: string;
  readonly ailment?: keyof typeof AILMENTS;
  /** No node has its labels. */
  readonly unschedulable?: boolean;
}

export type SmallCluster = ReturnType<typeof createSmallCluster>;

export function createSmallCluster(startAt = Date.parse("2026-01-01T12:00:00Z")) {
  let now = startAt;
  /** A quota lets the controllers create no more pods. */
  let isFull = false;
  const store = createStore({ now: () => now, after: () => () => {} }, 100);
  const memories = new Map<string, PodMemory>();
  /** UIDs of pods that have been Ready. */
  const served = new Set<string>();
  const nodes = [add(store, "Node", "node", { spec: {} })] as const;

  const set = (name: string): StatefulSet => existing(STATEFUL_SETS, name) as StatefulSet;
  const sets = (): StatefulSet[] => store.list(STATEFUL_SETS, NAMESPACE) as StatefulSet[];
  const pod = (name: string): Pod | undefined => store.get("pods", NAMESPACE, name) as Pod | undefined;
  /** In the order of their ordinals. */
  const podsOf = (name: string): Pod[] =>
    (store.list("pods", NAMESPACE) as Pod[])
      .filter(({ metadata }) => ownerOf(metadata.name) === name)
      .toSorted((a, b) => ordinalOf(a) - ordinalOf(b));

  /** As the API server stores them. */
  const objects = (): GroupObjects => ({
    statefulSets: sets(),
    pods: sets().flatMap(({ metadata }) => podsOf(metadata.name)),
    now,
  });

  function existing(resource: string, name: string): KubeObject {
    const object = store.get(resource, NAMESPACE, name);
    if (!object) throw new Error(`no ${resource} ${name}`);
    return object;
  }

  /** True if it changed anything. */
  function wrote(act: () => void): boolean {
    const before = store.version();
    act();
    return store.version() !== before;
  }

  /** One sync of the StatefulSet controller. */
  const sync = (name: string): boolean =>
    wrote(() => {
      const revision = (one: string) => store.get(REVISIONS, NAMESPACE, one) as Revision | undefined;
      apply(store, syncSet({ set: set(name), pods: podsOf(name), revision, now, ...(isFull && { room: 0 }) }));
    });

  /** The scheduler and the kubelet of a pod take one step. */
  const run = (name: string): boolean =>
    wrote(() => {
      const there = pod(name);
      if (!there) return;
      if (!there.spec.nodeName && !isTerminating(there))
        apply(store, schedule(there, { nodes, bound: () => [], turn: 0, hasClaim: () => true, now }));
      const bound = pod(name) as Pod;
      const { uid } = bound.metadata;
      const step = runPod(bound, memories.get(uid) ?? newMemory(uid, memories.size + 1), now);
      memories.set(uid, step.memory);
      apply(store, step);
      if (isTrue(pod(name), "Ready")) served.add(uid);
    });

  /** Steps of the kubelet until nothing changes. */
  function runOut(name: string): boolean {
    let ran = false;
    while (run(name)) ran = true;
    return ran;
  }

  /** One that is terminating stays as it is. */
  function annotatePod(name: string, annotations: Readonly<Record<string, string | undefined>>): void {
    const there = pod(name);
    if (there && !isTerminating(there))
      store.update("pods", put(there, ["metadata", "annotations"], merge(there, annotations)));
  }

  return {
    store,
    now: () => now,
    limitPods: (full: boolean): void => void (isFull = full),
    elapse: (ms: number): void => void (now += ms),
    set,
    sets,
    pod,
    podsOf,
    sync,
    run,
    runOut,
    runAll: (): void => store.list("pods", NAMESPACE).forEach(({ metadata }) => runOut(metadata.name)),
    /** Everything that the controllers and kubelets can do now. */
    settle(): void {
      for (let changed = true; changed;) {
        changed = false;
        for (const { metadata } of sets()) changed = sync(metadata.name) || changed;
        for (const { metadata } of store.list("pods", NAMESPACE)) changed = run(metadata.name) || changed;
      }
    },

    addSet(traits: ZoneTraits, template: Template = {}): void {
      const object = statefulSetObject(traits) as unknown as Draft;
      const spec = { ...(object["spec"] as object), podManagementPolicy: "Parallel" };
      const labels = { name: traits.name ?? "", ...traits.selected };
      const blank = { ...object, spec, status: { replicas: 0 } };
      store.create(STATEFUL_SETS, put(blank, ["spec", "template"], templateOf(template, labels)));
    },

    changeTemplate,

    /** A change of its spec by somebody. */
    change(name: string, spec: Partial<StatefulSet["spec"]>): void {
      const before = set(name);
      store.update(STATEFUL_SETS, { ...before, spec: { ...before.spec, ...spec } });
    },

    annotate(name: string, annotations: Readonly<Record<string, string | undefined>>): void {
      store.update(STATEFUL_SETS, put(set(name), ["metadata", "annotations"], merge(set(name), annotations)));
    },

    /** What the tick records once a zone is updated. */
    finish(name: string): void {
      const { status = {} as NonNullable<StatefulSet["status"]>, ...rest } = set(name);
      store.update(STATEFUL_SETS, { ...rest, status: { ...status, currentRevision: status.updateRevision ?? "" } });
    },

    /** The pod falls ill in this way, or is well again. */
    ail(name: string, ailment: keyof typeof AILMENTS): void {
      annotatePod(name, { "sim/ready": undefined, "sim/crash": undefined, ...AILMENTS[ailment] });
      runOut(name);
    },
    annotatePod,
    merge,

    remove: (name: string): void => void store.remove("pods", NAMESPACE, name),

    lifeOf(there: Pod | undefined): Life {
      if (!there) return "missing";
      if (isTerminating(there)) return "terminating";
      const { annotations = {} } = there.metadata;
      if (annotations["sim/crash"] === "true") return "crashing";
      if (isTrue(there, "Ready")) return "ready";
      if (annotations["sim/crash"] === "last") return "limping";
      return served.has(there.metadata.uid) ? "failed" : "starting";
    },

    objects,
    /** As a tick and budgets read them. */
    zones: (): readonly ZoneWithPods[] => readGroup(objects()).zones,
  };

  function changeTemplate(name: string, template: Template): void {
    const before = set(name);
    const next = templateOf(template, before.spec.template.metadata?.labels);
    store.update(STATEFUL_SETS, put(before, ["spec", "template"], next));
  }
}

function templateOf({ image = "app:0", ailment = "ready", unschedulable = false }: Template, labels: object = {}) {
  const containers = [
    { name: "c", image },
    { name: "d", image: "sidecar:1" },
  ];
  return {
    metadata: { labels, annotations: { ...AT_ONCE, ...AILMENTS[ailment] } },
    spec: { containers, terminationGracePeriodSeconds: 30, ...(unschedulable && { nodeSelector: { node: "none" } }) },
  };
}

function merge({ metadata }: KubeObject, changes: Readonly<Record<string, string | undefined>>) {
  const entries = Object.entries({ ...metadata.annotations, ...changes });
  return Object.fromEntries(entries.flatMap(([key, value]) => (value === undefined ? [] : [[key, value]])));
}

export const ownerOf = (pod: string): string => pod.replace(/-\d+$/, "");

export const ordinalOf = ({ metadata }: KubeObject): number => Number(metadata.name.split("-").at(-1));

export const isObserved = ({ metadata, status }: StatefulSet): boolean =>
  status?.observedGeneration === metadata.generation;

export const imageOf = ({ spec }: Pod | StatefulSet["spec"]["template"]): string => spec?.containers[0]?.image ?? "";

/** Whether the pod was made from the template that its StatefulSet has now. */
export const isCurrent = (pod: Pod, { spec }: StatefulSet): boolean => imageOf(pod) === imageOf(spec.template);
