/** An agent on a simulated host, the node API, and the embedded cluster; the test plays the controller. */
import type { TestContext } from "node:test";
import { systemClock } from "../../../../infra/clock.ts";
import { createHostApi } from "../../../../reconciler/nodes/agent/host-api.ts";
import { runAgent } from "../../../../reconciler/nodes/agent/loop.ts";
import type { CallNodeApi } from "../../../../reconciler/nodes/agent/call-node-api.ts";
import type { AgentTools } from "../../../../reconciler/nodes/agent/round.ts";
import { findEvictable } from "../../../../reconciler/nodes/node-pod.ts";
import { ROUTES } from "../../../../reconciler/nodes/routes.ts";
import type { State } from "../../../../reconciler/nodes/shadow.ts";
import { dig, put } from "../../../emulator/objects.ts";
import { type Host, type HostOptions, startHost } from "../../../host/host-server.ts";
import {
  type Agent,
  NAMESPACE,
  type NodeStage,
  playAgent,
  setNodeStage,
  SHADOWS,
} from "../../../functions/nodes/stage.ts";
import { add } from "../../../builders/objects.ts";

export const NODE = "node-1";

export interface AgentStage extends NodeStage {
  readonly host: Host;
  /** The routes that the agent has called, with the status of each answer. */
  readonly asked: string[];
  /** What was on the node as the host went down: evictable pods, by name. */
  readonly lost: string[];
  /** Starts a process of the agent; kill it by its controller. */
  readonly startAgent: (more?: Partial<AgentTools>) => {
    readonly kill: () => Promise<void>;
    readonly ended: Promise<void>;
  };
  readonly want: (state: State, version?: string) => void;
  readonly state: () => unknown;
  readonly status: (...path: string[]) => unknown;
  readonly createPod: (name: string) => void;
}

export const untilTrue = async (isTrue: () => boolean): Promise<void> => {
  while (!isTrue()) await systemClock.sleep(3);
};

/** Everything ends with the test. */
export async function setAgentStage(t: TestContext, options: HostOptions = {}): Promise<AgentStage> {
  const stage = await setNodeStage(t);
  const { store } = stage.emulator;
  const lost: string[] = [];
  const asked: string[] = [];
  const host = await startHost({
    offers: "1.1.0",
    ...options,
    onReboot: (phase) => {
      const here = store.list("pods").filter((pod) => dig(pod, "spec", "nodeName") === NODE);
      if (phase === "down") lost.push(...findEvictable(here as never).map(({ metadata }) => metadata?.name ?? ""));
    },
  });
  t.after(() => host.stop());
  const agent = await playAgent(stage, NODE);
  const kubelet = setInterval(() => endPods(stage), 10);
  t.after(() => clearInterval(kubelet));
  const started: { kill: () => Promise<void> }[] = [];
  t.after(() => Promise.all(started.map(({ kill }) => kill())));
  return {
    ...stage,
    host,
    asked,
    lost,
    startAgent(more = {}) {
      const stop = new AbortController();
      const ended = runAgent(
        { ...toolsFor(stage, host, callAs(stage, agent, asked)), stop: stop.signal, ...more },
        { pauseMs: 20, idleMs: 50 },
      );
      const process = { ended, kill: () => (stop.abort(), ended) };
      started.push(process);
      return process;
    },
    want(state, version = "1.1.0") {
      const shadow = stage.shadow(NODE);
      if (shadow)
        store.update(
          SHADOWS,
          put(shadow, ["spec"], { state, version, state_transition_timestamp: new Date().toISOString() }),
        );
    },
    state: () => dig(stage.shadow(NODE), "status", "current_state"),
    status: (...path) => dig(stage.shadow(NODE), "status", ...path),
    createPod: (name) =>
      void add(store, "Pod", name, { spec: { nodeName: NODE, containers: [] }, status: { phase: "Running" } }),
  };
}

function endPods({ emulator: { store } }: NodeStage): void {
  for (const { metadata } of store.list("pods", "default"))
    if (metadata.deletionTimestamp) store.remove("pods", "default", metadata.name, { gracePeriodSeconds: 0 });
}

/** Calls the API as the agent does; waits of seconds are shortened. */
function callAs(stage: NodeStage, agent: Agent, asked: string[]): CallNodeApi {
  return async (route, { status, ifMatch } = {}) => {
    const { method, path } = ROUTES[route];
    const answer = await stage.call(agent, `${method} ${path}`, {
      ...(status && { body: status }),
      headers: { ...(ifMatch !== undefined && { "if-match": `"${ifMatch}"` }) },
    });
    asked.push(`${route} ${answer.status}`);
    return { status: answer.status, text: JSON.stringify(answer.body), retryAfterMs: 10 };
  };
}

function toolsFor({ cluster, entries }: NodeStage, host: Host, callApi: CallNodeApi): Omit<AgentTools, "stop"> {
  const write = (msg: string, fields?: object): void => void (entries as unknown as object[]).push({ msg, ...fields });
  return {
    cluster,
    callApi,
    clock: systemClock,
    log: { debug: write, info: write, warn: write, error: write },
    namespace: NAMESPACE,
    nodeName: NODE,
    host: createHostApi(host.socketPath),
    readBootId: async () => host.facts().bootId,
    pollMs: 5,
    actionMs: 2000,
    refreshMs: 60_000,
    rebootMs: 1000,
    exclusionMs: 0,
    memory: {},
  };
}
