/**
 * One server that stands for the pods of all zones. It distinguishes them by name and records when each was
 * prepared.
 */
import { createServer } from "node:http";
import { listen } from "../../loopback.ts";

/** Variables of a process for which the names of pods lead to this machine. */
export const PODS_HERE = { NODE_OPTIONS: `--import=${new URL("pod-names.ts", import.meta.url).href}` };

export interface PodServer {
  readonly port: number;
  /** Environment variables that make a reconciler resolve pods to this server. */
  readonly env: Readonly<Record<string, string>>;
  /** When each prepared pod was prepared, milliseconds since the epoch, by name; a DELETE removes it. */
  readonly prepared: ReadonlyMap<string, number>;
  /** Pods that have been prepared at any time. */
  readonly everPrepared: ReadonlySet<string>;
  readonly close: () => void;
}

export async function startPodServer(): Promise<PodServer> {
  const prepared = new Map<string, number>();
  const everPrepared = new Set<string>();
  const server = createServer(({ method, headers }, response) => {
    const pod = headers.host?.split(".")[0] ?? "";
    if (method === "DELETE") prepared.delete(pod);
    else {
      prepared.set(pod, prepared.get(pod) ?? Date.now());
      everPrepared.add(pod);
    }
    response.end(JSON.stringify({ timestamp: Math.floor((prepared.get(pod) ?? 0) / 1000) }));
  });
  const port = await listen(server, "localhost");
  return {
    port,
    env: PODS_HERE,
    prepared,
    everPrepared,
    close: () => server.close().closeAllConnections(),
  };
}
