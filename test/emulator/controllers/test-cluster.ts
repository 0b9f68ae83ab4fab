/**
 * The fixture of the controllers' tests: store, controllers and nodes with a manual clock, without an API
 * server.
 */
import { manualClock } from "../clock.ts";
import type { Draft, KubeObject } from "../objects.ts";
import { createStore } from "../store.ts";
import { startControllers } from "./index.ts";
import type { Pod, StatefulSet } from "./objects.ts";
import { add, pod as podOf, statefulSet as zoneOf } from "../../builders/objects.ts";

const NAMESPACE = "default";

export function createCluster() {
  const clock = manualClock();
  const store = createStore(clock);
  for (const name of ["node-1", "node-2", "node-3"]) add(store, "Node", name, { spec: {} });
  startControllers(store, clock);
  const getExisting = (resource: string, name: string): KubeObject => {
    const object = store.get(resource, NAMESPACE, name);
    if (!object) throw new Error(`no ${resource} ${name}`);
    return object;
  };
  const set = (): StatefulSet => getExisting("statefulsets.apps", "z") as StatefulSet;
  return {
    store,
    clock,
    /** Throws if there is none of that name. */
    pod: (name: string): Pod => getExisting("pods", name) as Pod,
    podNames: (): string[] => store.list("pods", NAMESPACE).map(({ metadata }) => metadata.name),
    /** The StatefulSet "z". */
    set,
    /** Changes its spec. */
    change: (spec: object): void => {
      const before = set();
      store.update("statefulsets.apps", { ...before, spec: { ...before.spec, ...spec } });
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
