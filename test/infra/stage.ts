/** A tiny HTTPS server that answers by script, and a Cluster that talks to it. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { Agent, createServer } from "node:https";
import { after } from "node:test";
import { certify } from "../certify.ts";
import type { Clock } from "../../infra/clock.ts";
import type { Cluster } from "../../infra/kubernetes/cluster.ts";
import { type ClusterOptions, connectCluster } from "../../infra/kubernetes/connect-cluster.ts";
import type { Connection } from "../../infra/kubernetes/connection.ts";
import { listen } from "../loopback.ts";

/** A request as it arrived. */
export interface Seen {
  readonly method: string;
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

export type Reply = (response: ServerResponse, seen: Seen) => void;

export interface Stage {
  readonly cluster: Cluster;
  readonly seen: readonly Seen[];
  /** Milliseconds of each wait, by a clock whose waits take no time. */
  readonly waits: readonly number[];
  readonly server: URL;
}

const tls = await certify("localhost");

export const { caPem } = tls;

/** A clock whose waits take no time and move it. */
export function skippingClock(waits: number[] = []): Clock {
  let time = 0;
  return {
    now: () => time,
    monotonic: () => time,
    sleep: (ms) => {
      waits.push(ms);
      time += ms;
      return Promise.resolve();
    },
  };
}

/**
 * Answers the first request with the first reply and so on, the last one again and again; everything ends with the
 * test.
 */
export async function stage(replies: readonly Reply[], options: Partial<ClusterOptions> = {}): Promise<Stage> {
  const seen: Seen[] = [];
  const waits: number[] = [];
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { pathname: path, searchParams } = new URL(request.url ?? "", "https://test");
    let body = "";
    for await (const chunk of request) body += String(chunk);
    const one = {
      method: request.method ?? "",
      path,
      query: Object.fromEntries(searchParams),
      headers: request.headers,
      body,
    };
    const reply = replies[Math.min(seen.length, replies.length - 1)];
    seen.push(one);
    reply?.(response, one);
  };
  const server = createServer(
    { cert: tls.certPem, key: tls.keyPem },
    (request, response) => void answer(request, response),
  );
  const url = new URL(`https://127.0.0.1:${await listen(server)}`);
  const connection = connectionTo(url);
  after(() => {
    connection.close();
    server.closeAllConnections();
    server.close();
  });
  const cluster = connectCluster(connection, { timeoutMs: 5000, clock: skippingClock(waits), ...options });
  return { cluster, seen, waits, server: url };
}

export function connectionTo(server: URL): Connection {
  const agent = new Agent({ keepAlive: true });
  return {
    server,
    authorize: () => Promise.resolve({ ca: caPem, headers: { authorization: "Bearer secret" }, agent }),
    close: () => agent.destroy(),
  };
}

export function json(value: unknown, status = 200, headers: Readonly<Record<string, string>> = {}): Reply {
  return (response) =>
    response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(value));
}

/** A metav1.Status of failure. */
export function failure(
  code: number,
  reason: string,
  message: string,
  headers: Readonly<Record<string, string>> = {},
): Reply {
  return json({ kind: "Status", apiVersion: "v1", status: "Failure", code, reason, message }, code, headers);
}

/** Breaks the connection before any answer. */
export const reset: Reply = (response) => response.socket?.destroy();

/** Never answers. */
export const silence: Reply = () => undefined;
