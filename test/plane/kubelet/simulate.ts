/**
 * Plays the scheduler and the kubelets of a control plane that has none. Annotations of a pod control when it
 * becomes ready, unready and gone:
 *
 *   new --bind--> Running, not Ready --sim/ready-after-ms--> Ready <--sim/ready--> not Ready
 *   deleted --sim/exit-after-ms--> gone
 */
import { isDeepStrictEqual } from "node:util";
import type { Admin } from "../../cluster/stage/client.ts";
import { annotation, durationOf, EXIT_AFTER_MS, READY_AFTER_MS, statusOf } from "../../emulator/controllers/kubelet.ts";
import { hasEnded, isTerminating, type Pod } from "../../emulator/controllers/objects.ts";
import { isTrue, timestamp } from "../../emulator/objects.ts";
import { adoptNode, isReal, type Node } from "./nodes.ts";
import { asksForReal, createScheduler, type NodeFacts } from "./pick-node.ts";
import { persist } from "./persist.ts";

/** What the simulation knows of a pod. */
interface PodState {
  pod: Pod;
  readonly ip: string;
  /** Where it is bound, or about to be. */
  node?: string;
  /** Its containers run and pass their probes. */
  isUp: boolean;
  isStarting: boolean;
  isEnding: boolean;
  reported?: ReturnType<typeof factsOf>;
  /** Ends with the last report: a report that overtook an earlier one would leave the pod in the earlier state. */
  reporting?: Promise<void>;
}

export interface Simulation {
  readonly onNode: (type: string, node: Node) => void;
  readonly onPod: (type: string, pod: Pod) => void;
}

/** Every existing node must be reported before the first pod. */
export function simulate(admin: Admin): Simulation {
  const nodes = new Map<string, Omit<NodeFacts, "podCount">>();
  const realNodes = new Set<string>();
  const pods = new Map<string, PodState>();
  const pickNode = createScheduler();
  let lastIp = 0;

  function meet(pod: Pod): PodState {
    lastIp += 1;
    return {
      pod,
      ip: `10.244.${(lastIp >> 8) & 255}.${lastIp & 255}`,
      isUp: false,
      isStarting: false,
      isEnding: false,
    };
  }

  function bind(state: PodState): void {
    if (state.node !== undefined) return;
    const bound = [...pods.values()].map(({ node, pod }) => node ?? pod.spec.nodeName);
    const counted = [...nodes].map(
      ([name, facts]) => [name, { ...facts, podCount: bound.filter((node) => node === name).length }] as const,
    );
    const node = pickNode(state.pod, new Map(counted));
    if (node === undefined) return;
    state.node = node;
    const { name } = state.pod.metadata;
    const body = {
      apiVersion: "v1",
      kind: "Binding",
      metadata: { name },
      target: { apiVersion: "v1", kind: "Node", name: node },
    };
    persist(0, () => admin.call("POST", `${pathOf(state.pod)}/binding`, body));
  }

  function run(state: PodState): void {
    const { pod } = state;
    if (!isMeantToBeUp(pod)) state.isUp = false;
    else if (!state.isUp && !state.isStarting) {
      state.isStarting = true;
      setTimeout(() => start(state), durationOf(pod, "ready-after-ms", READY_AFTER_MS));
    }
    report(state);
  }

  function start(state: PodState): void {
    state.isStarting = false;
    if (state.isEnding || !pods.has(state.pod.metadata.uid) || !isMeantToBeUp(state.pod)) return;
    state.isUp = true;
    report(state);
  }

  /** Kubelets report their own news; what others write to the status stays until then. */
  function report(state: PodState): void {
    const facts = factsOf(state);
    if (isDeepStrictEqual(facts, state.reported)) return;
    state.reported = facts;
    const write = async (): Promise<void> => {
      const { pod, ip } = state;
      const status = statusOf(pod, { ...factsOf(state), ip }, timestamp(Date.now()));
      await admin.call("PATCH", `${pathOf(pod)}/status`, { metadata: { uid: pod.metadata.uid }, status });
    };
    const isGone = (): boolean => !pods.has(state.pod.metadata.uid);
    state.reporting = (state.reporting ?? Promise.resolve()).then(() => persist(0, write, isGone));
  }

  function end(state: PodState): void {
    if (state.isEnding) return;
    state.isEnding = true;
    const { pod } = state;
    const body = { gracePeriodSeconds: 0, preconditions: { uid: pod.metadata.uid } };
    persist(durationOf(pod, "exit-after-ms", EXIT_AFTER_MS), () => admin.call("DELETE", pathOf(pod), body));
  }

  return {
    onNode(type, node) {
      const { name = "", labels = {} } = node.metadata ?? {};
      if (type === "DELETED") return void nodes.delete(name);
      if (isReal(node)) realNodes.add(name);
      if (type === "ADDED") persist(0, () => adoptNode(admin, node));
      nodes.set(name, { isSchedulable: !node.spec?.unschedulable, labels });
      for (const state of pods.values()) if (!state.pod.spec.nodeName && !isTerminating(state.pod)) bind(state);
    },
    onPod(type, pod) {
      const { uid } = pod.metadata;
      if (type === "DELETED") return void pods.delete(uid);
      if (pod.spec.nodeName && (asksForReal(pod) || realNodes.has(pod.spec.nodeName))) return;
      const state = pods.get(uid) ?? meet(pod);
      pods.set(uid, state);
      state.pod = pod;
      if (isTerminating(pod)) end(state);
      else if (!pod.spec.nodeName) bind(state);
      else if (!hasEnded(pod)) run(state);
    },
  };
}

const isCrashing = (pod: Pod): boolean => annotation(pod, "crash") === "true";
const isMeantToBeUp = (pod: Pod): boolean => !isCrashing(pod) && annotation(pod, "ready") !== "false";
const pathOf = ({ metadata: { namespace, name } }: Pod): string => `/api/v1/namespaces/${namespace}/pods/${name}`;

function factsOf({ pod, isUp }: PodState): Record<"up" | "gatesOpen" | "crashing", boolean> {
  const gatesOpen = (pod.spec.readinessGates ?? []).every((gate) => isTrue(pod, gate.conditionType));
  return { up: isUp, gatesOpen, crashing: isCrashing(pod) };
}
