/** A server that plays the pods of all zones: each is told by its name, and remembers since when it has been prepared. */
import { createServer } from "node:http";
import { listen } from "../loopback.ts";

export interface PlayedPods {
  readonly port: number;
  /** Variables that make a reconciler find the pods here. */
  readonly env: Readonly<Record<string, string>>;
  /** Since when each pod has been prepared, milliseconds since the epoch, by its name; what was POSTed and not DELETEd. */
  readonly prepared: ReadonlyMap<string, number>;
  /** Pods that were told to prepare at some time. */
  readonly everPrepared: ReadonlySet<string>;
  readonly close: () => void;
}

export async function playPods(): Promise<PlayedPods> {
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
  const names = new URL("pod-names.ts", import.meta.url).href;
  return {
    port,
    env: { NODE_OPTIONS: `--import=${names}` },
    prepared,
    everPrepared,
    close: () => server.close().closeAllConnections(),
  };
}
