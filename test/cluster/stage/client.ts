/**
 * The tests' own client for the API server, with the rights of KUBECONFIG (an admin). The processes under
 * test never use it.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { loadConnection } from "../../../infra/kubernetes/connection.ts";
import { readText } from "../../../infra/http.ts";
import { openExchange, type WireRequest } from "../../../infra/kubernetes/request.ts";
import { splitLines } from "../../../infra/kubernetes/watch.ts";

export interface WatchEvent<T> {
  readonly type: "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK" | "ERROR";
  readonly object: T;
}

export interface Admin {
  readonly server: string;
  /** The trusted certificates, PEM; undefined for the machine's own. */
  readonly ca: string | undefined;
  /**
   * Rejects with the server's message, and the status code as the cause, unless the server responds with
   * success.
   */
  readonly call: <T>(method: WireRequest["method"], path: string, body?: unknown) => Promise<T>;
  /**
   * Resolves when the stream ends. An error response becomes one event of type ERROR. Rejects if the
   * connection breaks.
   */
  readonly watch: <T>(path: string, onEvent: (event: WatchEvent<T>) => void, signal: AbortSignal) => Promise<void>;
  readonly close: () => void;
}

/** Far longer than any call takes, also one that waits for webhooks on a machine under load. */
const CALL_MS = 60_000;
/** Until a clean-up gives up. */
const REMOVAL_MS = 120_000;

/**
 * Deletes an object; one that is gone, or on its way, is as good. Tries again after any other error, and never rejects:
 * it is for clean-ups, which must neither hide why a test has failed nor fail one.
 */
export async function remove({ call }: Pick<Admin, "call">, path: string): Promise<void> {
  for (const end = performance.now() + REMOVAL_MS; ; await sleep(500)) {
    const error = await call("DELETE", path).then(
      () => undefined,
      (error: Error) => error,
    );
    if (error === undefined || error.cause === 404 || error.cause === 409) return;
    if (performance.now() > end) return console.error(`left behind: ${path}: ${error.message}`);
  }
}

/** Connects with a kubeconfig file. */
export async function connectAdmin(kubeconfig: string | undefined): Promise<Admin> {
  if (kubeconfig === undefined) throw new Error("KUBECONFIG is not set: these tests run on the cluster that it names");
  const connection = await loadConnection({ kubeconfig });
  const { ca } = await connection.authorize();
  return {
    server: connection.server.href.replace(/\/$/, ""),
    ca: ca === undefined ? undefined : [ca].flat().join("\n"),
    async call<T>(method: WireRequest["method"], path: string, body?: unknown) {
      const signal = AbortSignal.timeout(CALL_MS);
      const contentType = method === "PATCH" ? "application/merge-patch+json" : "application/json";
      const wire = {
        method,
        path,
        accept: "application/json",
        contentType,
        ...(body !== undefined && { body: JSON.stringify(body) }),
      };
      const answer = await openExchange(connection, wire, { signal, remainingMs: () => CALL_MS });
      const text = await readText(answer, signal);
      const status = answer.statusCode ?? 0;
      if (status >= 300) throw new Error(`${method} ${path}: ${status} ${text.slice(0, 1000)}`, { cause: status });
      return JSON.parse(text) as T;
    },
    async watch<T>(path: string, onEvent: (event: WatchEvent<T>) => void, signal: AbortSignal) {
      const answer = await openExchange(
        connection,
        { method: "GET", path, accept: "application/json" },
        { signal, remainingMs: () => CALL_MS },
      );
      if (answer.statusCode !== 200)
        return onEvent({ type: "ERROR", object: JSON.parse(await readText(answer, signal)) as T });
      const lines = splitLines();
      for await (const chunk of answer) {
        for (const line of lines(chunk)) onEvent(JSON.parse(line) as WatchEvent<T>);
      }
    },
    close: () => connection.close(),
  };
}
