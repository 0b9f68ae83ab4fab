/**
 * A simulated host and the agent on it: the loop that the DaemonSet runs, ended by each reboot of its host. Its kubelet
 * is told of each boot.
 */
import { createHostApi } from "../../reconciler/nodes/agent/host-api.ts";
import { runAgent } from "../../reconciler/nodes/agent/loop.ts";
import { type Host, type HostOptions, startHost } from "./host-server.ts";

type Tools = Parameters<typeof runAgent>[0];

export interface PlayedHost {
  readonly host: Host;
  readonly restartAgent: () => Promise<void>;
  /** Ends both. */
  readonly stop: () => Promise<void>;
}

interface Options {
  readonly host: Omit<HostOptions, "onReboot">;
  readonly agent: Pick<Tools, "cluster" | "clock" | "log" | "namespace" | "nodeName" | "callApi">;
  readonly reportBoot: (boot: { readonly ready: boolean; readonly bootId: string }) => unknown;
}

export async function playHost({ host: traits, agent, reportBoot }: Options): Promise<PlayedHost> {
  let endAgent = async (): Promise<void> => {};
  const host = await startHost({
    ...traits,
    async onReboot(phase, { facts }) {
      if (phase === "down") void endAgent();
      await reportBoot({ ready: phase === "up", bootId: facts().bootId });
      if (phase === "up") startAgent();
    },
  });

  function startAgent(): void {
    const stop = new AbortController();
    const tools = {
      ...agent,
      stop: stop.signal,
      host: createHostApi(host.socketPath),
      readBootId: async () => host.facts().bootId,
      pollMs: 100,
      actionMs: 60_000,
      refreshMs: 60_000,
      rebootMs: 60_000,
      exclusionMs: 0,
      memory: {},
    };
    const ended = runAgent(tools, { pauseMs: 300, idleMs: 2000 });
    endAgent = async () => (stop.abort(), await ended);
  }

  await reportBoot({ ready: true, bootId: host.facts().bootId });
  startAgent();
  return {
    host,
    async restartAgent() {
      await endAgent();
      startAgent();
    },
    async stop() {
      await endAgent();
      await host.stop();
    },
  };
}
