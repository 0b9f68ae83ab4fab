/** One HTTP exchange with the API server. */
import http from "node:http";
import https from "node:https";
import type { Socket } from "node:net";
import type { Connection } from "./connection.ts";
import { type Deadline, unlessAborted } from "../deadline.ts";
import { RolloutError } from "../errors.ts";

export interface WireRequest {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** With the query string, but without `timeout`. */
  readonly path: string;
  readonly accept: string;
  readonly body?: string;
  readonly contentType?: string;
  /** Headers that name the span of the request. */
  readonly trace?: Readonly<Record<string, string>>;
}

const USER_AGENT = "zonewise";

/**
 * Sends the request and resolves with the head of the response; the caller reads the body. The deadline's signal aborts
 * both by closing the connection.
 *
 *   credentials -> connection -> time left? --yes--> the request, with `timeout=<time left>`
 *                                           --no--> `Timeout`: no byte was sent
 *
 * `timeout` makes the server end the request at the same time, so that a write cannot take effect much later. The time
 * left is computed last, as the process may be suspended at any step. It is never 0: the server takes 0 for no timeout.
 */
export async function openExchange(
  connection: Connection,
  wire: WireRequest,
  deadline: Pick<Deadline, "signal" | "remainingMs">,
): Promise<http.IncomingMessage> {
  const { signal } = deadline;
  const options = await unlessAborted(connection.authorize(), signal);
  const { server } = connection;
  const body = wire.body === undefined ? undefined : Buffer.from(wire.body);
  const open = connection.open ?? (server.protocol === "http:" ? http.request : https.request);
  return await new Promise((resolve, reject) => {
    const request = open({
      ...options,
      host: server.hostname.replace(/^\[|\]$/g, ""),
      port: server.port || undefined,
      method: wire.method,
      path: server.pathname.replace(/\/$/, "") + wire.path,
      headers: {
        ...options.headers,
        ...wire.trace,
        "user-agent": USER_AGENT,
        accept: wire.accept,
        ...(body && { "content-type": wire.contentType ?? "application/json", "content-length": body.length }),
      },
    });
    let isAnswered = false;
    const stop = (): void => void request.destroy();
    signal.addEventListener("abort", stop, { once: true });
    request.on("close", () => signal.removeEventListener("abort", stop));
    request.on("error", (error: NodeJS.ErrnoException) => {
      if (signal.aborted) reject(signal.reason);
      // The server closed an idle connection while the request reused it:
      // https://nodejs.org/api/http.html#requestreusedsocket
      else if (!isAnswered && wire.method === "GET" && request.reusedSocket && error.code === "ECONNRESET")
        resolve(openExchange(connection, wire, deadline));
      else reject(error);
    });
    request.on("response", (answer) => {
      isAnswered = true;
      resolve(answer);
    });
    request.setSocketKeepAlive(true, 30_000);
    const send = (): void => {
      const leftMs = Math.floor(deadline.remainingMs());
      if (leftMs <= 0)
        return void request.destroy(new RolloutError("Timeout", "its time was up before it could be sent"));
      request.path += `${request.path.includes("?") ? "&" : "?"}timeout=${leftMs}ms`;
      request.end(body);
    };
    request.on("socket", (socket) => onceOpen(socket, send));
  });
}

/**
 * Calls `then` once the socket is connected: data written earlier would wait in the socket with an outdated timeout.
 */
function onceOpen(socket: Socket & { readonly secureConnecting?: boolean }, then: () => void): void {
  if (socket.secureConnecting) socket.once("secureConnect", then);
  else if (socket.connecting) socket.once("connect", then);
  else then();
}
