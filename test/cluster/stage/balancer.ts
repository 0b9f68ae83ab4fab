/**
 * A round-robin load balancer for webhook processes, like a Service. It records which evictions they allowed,
 * and when.
 */
import https from "node:https";
import { CONNECTION_TIMEOUTS } from "../../../functions/http/server.ts";
import { listen } from "../../loopback.ts";

export interface Review {
  readonly allowed: boolean;
  /** When the response arrived, by `performance.now()`. */
  readonly at: number;
}

/** The last review of each Eviction with the annotation `storm`, by the annotation's value. */
export interface Reviews {
  /** Returns and removes a review. */
  readonly take: (id: string) => Review | undefined;
}

interface Balancer {
  readonly port: number;
  readonly reviews: Reviews;
  readonly close: () => void;
}

interface Tls {
  readonly certPem: string;
  readonly keyPem: string;
  readonly caPem: string;
}

/**
 * Starts one on a free port. `ports` is read for each request; an entry is undefined while its process is
 * down.
 */
export async function startBalancer(tls: Tls, name: string, ports: readonly (number | undefined)[]): Promise<Balancer> {
  const agent = new https.Agent({ keepAlive: true, ca: tls.caPem });
  const reviews = new Map<string, Review>();
  let requests = 0;
  const server = https.createServer(
    { ...CONNECTION_TIMEOUTS, cert: tls.certPem, key: tls.keyPem },
    (request, response) => {
      const up = ports.filter((port) => port !== undefined);
      const chosen = up[requests++ % up.length];
      if (chosen === undefined) return void response.destroy();
      const target = { agent, servername: name, host: "127.0.0.1", port: chosen };
      const requestText = collect(request);
      const forwarded = https.request(
        { ...target, method: "POST", path: request.url, headers: request.headers },
        (upstream) => {
          const responseText = collect(upstream);
          response.writeHead(upstream.statusCode ?? 502, upstream.headers);
          upstream.pipe(response);
          upstream.on("end", () => {
            const id = /"storm":"(?<id>[^"]+)"/.exec(requestText())?.groups?.["id"];
            if (id !== undefined)
              reviews.set(id, { allowed: responseText().includes('"allowed":true'), at: performance.now() });
          });
        },
      );
      forwarded.on("error", () => response.destroy());
      request.pipe(forwarded);
    },
  );
  const port = await listen(server);
  const take = (id: string): Review | undefined => {
    const review = reviews.get(id);
    reviews.delete(id);
    return review;
  };
  const close = (): void => {
    server.closeAllConnections();
    server.close();
    agent.destroy();
  };
  return { port, reviews: { take }, close };
}

/** Collects the stream's text; the returned function gives what has arrived so far. */
function collect(stream: NodeJS.ReadableStream): () => string {
  let text = "";
  stream.on("data", (chunk: Buffer) => (text += chunk.toString()));
  return () => text;
}
