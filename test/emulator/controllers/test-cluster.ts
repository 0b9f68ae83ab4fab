/**
 * The fixture of the controllers' tests: store, controllers and nodes with a manual clock, without an API
 * server.
 */
import { manualClock, type ManualClock } from "../clock.ts";
import type { Draft, KubeObject } from "../objects.ts";
import { createStore, type Store } from "../store.ts";
import { startControllers } from "./index.ts";
import type { Pod, StatefulSet, StatefulSetStatus } from "./objects.ts";
import { pod as podOf, statefulSet as zoneOf, add } from "../../builders.ts";

export interface Cluster {
  readonly store: Store;
  readonly clock: ManualClock;
  /** Returns the pod of that name; throws if there is none. */
  readonly pod: (name: string) => Pod;
  readonly podNames: () => string[];
  /** The status of the StatefulSet "z" without the names of revisions. */
  readonly counts: () => Partial<StatefulSetStatus>;
  readonly set: () => StatefulSet;
  /** Changes the spec of the StatefulSet "z". */
  readonly change: (spec: object) => void;
  readonly annotate: (pod: string, annotations: Record<string, string>) => void;
  readonly stop: () => void;
}

const NAMESPACE = "default";

export function createCluster({ nodes = 3 }: { nodes?: number } = {}): Cluster {
  const clock = manualClock();
  const store = createStore(clock);
  for (let n = 1; n <= nodes; n++) {
    const labels = { "topology.kubernetes.io/zone": `zone-${n}` };
    add(store, "Node", `node-${n}`, { labels, spec: {} });
  }
  const stop = startControllers(store, clock);
  const getExisting = (resource: string, name: string): KubeObject => {
    const object = store.get(resource, NAMESPACE, name);
    if (!object) throw new Error(`no ${resource} ${name}`);
    return object;
  };
  const set = (): StatefulSet => getExisting("statefulsets.apps", "z") as StatefulSet;
  const pod = (name: string): Pod => getExisting("pods", name) as Pod;
  return {
    store,
    clock,
    stop,
    pod,
    set,
    podNames: () => store.list("pods", NAMESPACE).map(({ metadata }) => metadata.name),
    counts: () => {
      const {
        currentRevision: _,
        updateRevision: __,
        collisionCount: ___,
        ...counts
      }: Partial<StatefulSetStatus> = set().status ?? {};
      return counts;
    },
    change: (spec) => {
      const before = set();
      store.update("statefulsets.apps", { ...before, spec: { ...before.spec, ...spec } });
    },
    annotate: (name, annotations) => {
      const before = pod(name);
      store.update("pods", {
        ...before,
        metadata: { ...before.metadata, annotations: { ...before.metadata.annotations, ...annotations } },
      });
    },
  };
}

export function template(image = "app:1", annotations: Record<string, string> = {}): object {
  return { metadata: { labels: { app: "z" }, annotations }, spec: { containers: [{ name: "main", image }] } };
}

/** The StatefulSet "z", whose pods have the label `app`. */
export const statefulSet = (replicas: number, spec: object = {}): Draft =>
  zoneOf("z", replicas, {
    spec: { selector: { matchLabels: { app: "z" } }, template: template(), ...spec },
    status: { replicas: 0, availableReplicas: 0 },
  });

export const pod = (name: string, annotations: Record<string, string> = {}, spec: object = {}): Draft =>
  podOf(name, { annotations, labels: { app: "z" }, spec });
