/** What a Service does for webhook processes: each request goes to the next one. Reads along which evictions they allowed, and when. */
import https from "node:https";
import { listen } from "../loopback.ts";

export interface Review {
  readonly allowed: boolean;
  /** When it was answered, by `performance.now()`. */
  readonly at: number;
}

/** The last review of each Eviction that carries the annotation `storm`, by its value. */
export interface Reviews {
  /** Gives it out once. */
  readonly take: (id: string) => Review | undefined;
}

export interface Balancer {
  readonly port: number;
  readonly reviews: Reviews;
  readonly close: () => void;
}

interface Tls {
  readonly certPem: string;
  readonly keyPem: string;
  readonly caPem: string;
}

/** Starts one on a free port; `ports` is read anew for each request, undefined for a process that is down. */
export async function balance(tls: Tls, name: string, ports: readonly (number | undefined)[]): Promise<Balancer> {
  const agent = new https.Agent({ keepAlive: true, ca: tls.caPem });
  const reviews = new Map<string, Review>();
  let turn = 0;
  const server = https.createServer({ cert: tls.certPem, key: tls.keyPem }, (request, response) => {
    const up = ports.filter((port) => port !== undefined);
    const target = { agent, servername: name, host: "127.0.0.1", port: up[turn++ % up.length] };
    const asked = collect(request);
    const forwarded = https.request({ ...target, method: "POST", path: request.url, headers: request.headers }, (answer) => {
      const said = collect(answer);
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
      answer.on("end", () => {
        const id = /"storm":"(?<id>[^"]+)"/.exec(asked())?.groups?.["id"];
        if (id !== undefined) reviews.set(id, { allowed: said().includes('"allowed":true'), at: performance.now() });
      });
    });
    forwarded.on("error", () => response.destroy());
    request.pipe(forwarded);
  });
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

function collect(stream: NodeJS.ReadableStream): () => string {
  let text = "";
  stream.on("data", (chunk: Buffer) => (text += chunk.toString()));
  return () => text;
}
