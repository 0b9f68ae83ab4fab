/** One server that stands for the pods of all zones. It tells them apart by name. */
import { createServer } from "node:http";
import { listen } from "../../loopback.ts";

export interface PodServer {
  readonly port: number;
  /** Environment variables of a process for which the names of pods lead to this machine. */
  readonly env: Readonly<Record<string, string>>;
  /** All requests in order, such as `POST zone-a-2`. */
  readonly requests: string[];
  /** Pods that have been prepared at any time; a DELETE ends the preparation. */
  readonly everPrepared: ReadonlySet<string>;
  /** Returns the status code of a pod's response; 200 by default. */
  respond: (method: string, pod: string) => number | Promise<number>;
  readonly close: () => void;
}

export async function startPodServer(): Promise<PodServer> {
  /** When each was prepared, milliseconds since the epoch. */
  const prepared = new Map<string, number>();
  const everPrepared = new Set<string>();
  const server = createServer(({ method = "", headers }, response) => {
    const pod = headers.host?.split(".")[0] ?? "";
    pods.requests.push(`${method} ${pod}`);
    if (method === "DELETE") prepared.delete(pod);
    else {
      prepared.set(pod, prepared.get(pod) ?? Date.now());
      everPrepared.add(pod);
    }
    const body = JSON.stringify({ timestamp: Math.floor((prepared.get(pod) ?? 0) / 1000) });
    void Promise.resolve(pods.respond(method, pod)).then((status) => response.writeHead(status).end(body));
  });
  const pods: PodServer = {
    port: await listen(server, "localhost"),
    env: { NODE_OPTIONS: `--import=${new URL("pod-names.ts", import.meta.url).href}` },
    requests: [],
    everPrepared,
    respond: () => 200,
    close: () => server.close().closeAllConnections(),
  };
  return pods;
}
