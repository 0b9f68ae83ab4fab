/**
 * Plays the scheduler and the kubelets of a control plane that has none, by the emulator's models of them
 * (schedule.ts, run-pod.ts): what they would change is sent to the API server.
 */
import type { Admin } from "../../cluster/stage/client.ts";
import type { Change } from "../../emulator/controllers/changes.ts";
import { controllerOf, isTerminating, type Pod } from "../../emulator/controllers/objects.ts";
import { newMemory, runPod, type PodMemory } from "../../emulator/controllers/run-pod.ts";
import { asksForReal, pickNode } from "../../emulator/controllers/schedule.ts";
import type { KubeObject } from "../../emulator/objects.ts";
import { adoptNode, isReal, type Node } from "./nodes.ts";
import { persist } from "./persist.ts";

/** What the simulation knows of a pod. */
interface PodState {
  pod: Pod;
  memory: PodMemory;
  /** Where it is bound, or about to be. */
  node?: string;
  /** A write is under way: a report that overtook an earlier one would leave the pod in the earlier state. */
  isWriting: boolean;
  isEnding: boolean;
  timer?: NodeJS.Timeout;
}

interface Simulation {
  readonly onNode: (type: string, node: Node) => void;
  readonly onPod: (type: string, pod: Pod) => void;
}

/** Every existing node must be reported before the first pod. */
export function simulate(admin: Admin): Simulation {
  const nodes = new Map<string, Node>();
  const realNodes = new Set<string>();
  const pods = new Map<string, PodState>();
  const turns = new Map<string, number>();
  let count = 0;

  function meet(pod: Pod): PodState {
    return { pod, memory: newMemory(pod.metadata.uid, ++count), isWriting: false, isEnding: false };
  }

  function bind(state: PodState): void {
    if (state.node !== undefined) return;
    const { name, uid } = state.pod.metadata;
    const owner = controllerOf(state.pod)?.uid ?? uid;
    const turn = turns.get(owner) ?? turns.size;
    turns.set(owner, turn);
    const bound = () => [...pods.values()].map(({ node, pod }) => node ?? pod.spec.nodeName);
    const node = pickNode(state.pod, { nodes: [...nodes.values()] as unknown as KubeObject[], bound, turn });
    if (node === undefined) return;
    state.node = node;
    const body = {
      apiVersion: "v1",
      kind: "Binding",
      metadata: { name },
      target: { apiVersion: "v1", kind: "Node", name: node },
    };
    void persist(0, () => admin.call("POST", `${pathOf(state.pod)}/binding`, body));
  }

  /** One step of the pod's kubelet, and the next when it is due. */
  function run(state: PodState): void {
    clearTimeout(state.timer);
    if (state.isWriting || state.isEnding || !pods.has(state.pod.metadata.uid)) return;
    const { memory, changes, nextMs } = runPod(state.pod, state.memory, Date.now());
    state.memory = memory;
    if (nextMs !== undefined) state.timer = setTimeout(() => run(state), nextMs);
    for (const change of changes) void write(state, change);
  }

  async function write(state: PodState, { verb, object }: Change): Promise<void> {
    const { uid } = state.pod.metadata;
    const path = pathOf(state.pod);
    if (verb === "remove") {
      state.isEnding = true;
      const body = { gracePeriodSeconds: 0, preconditions: { uid } };
      return await persist(0, () => admin.call("DELETE", path, body));
    }
    state.isWriting = true;
    const { status } = object as Pod;
    const isGone = (): boolean => !pods.has(uid);
    await persist(0, () => admin.call("PATCH", `${path}/status`, { metadata: { uid }, status }), isGone);
    state.isWriting = false;
    run(state);
  }

  return {
    onNode(type, node) {
      const { name = "" } = node.metadata ?? {};
      if (type === "DELETED") return void nodes.delete(name);
      if (isReal(node)) realNodes.add(name);
      if (type === "ADDED") void persist(0, () => adoptNode(admin, node));
      nodes.set(name, node);
      for (const state of pods.values()) if (!state.pod.spec.nodeName && !isTerminating(state.pod)) bind(state);
    },
    onPod(type, pod) {
      const { uid } = pod.metadata;
      if (type === "DELETED") return void pods.delete(uid);
      if (pod.spec.nodeName && (asksForReal(pod) || realNodes.has(pod.spec.nodeName))) return;
      const state = pods.get(uid) ?? meet(pod);
      pods.set(uid, state);
      state.pod = pod;
      if (!pod.spec.nodeName && !isTerminating(pod)) bind(state);
      else run(state);
    },
  };
}

const pathOf = ({ metadata: { namespace, name } }: Pod): string => `/api/v1/namespaces/${namespace}/pods/${name}`;
