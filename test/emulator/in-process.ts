/** HTTP without sockets: requests and responses as the real code uses them. */
import { EventEmitter } from "node:events";
import type { ClientRequest, IncomingMessage, OutgoingHttpHeaders, ServerResponse } from "node:http";
import type { RequestOptions } from "node:https";
import { Readable } from "node:stream";
import type { OpenRequest } from "../../infra/http.ts";
import type { Api } from "./api.ts";
import { serve } from "./server.ts";

/** A request as it leaves its client. */
export interface Sent {
  readonly method: string;
  readonly host: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Buffer;
}

export interface HostAnswer {
  readonly status: number;
  readonly body: string;
  /** After so many milliseconds; at once without it. */
  readonly lateMs?: number;
}

/** The client's end of an exchange. */
export interface Client {
  /** The head of the answer. */
  head(status: number, headers: Readonly<Record<string, string>>): void;
  chunk(data: string | Buffer): void;
  end(): void;
  /** The connection breaks. */
  fail(error: Error): void;
  /** True once the client has closed the connection, or its answer has ended. */
  readonly closed: boolean;
  onClose(run: () => void): void;
}

export type Send = (sent: Sent, client: Client) => void;

export const reset = (text = "socket hang up"): Error => Object.assign(new Error(text), { code: "ECONNRESET" });

/** `https.request` by another carrier than the network. */
export function openOver(send: Send): OpenRequest {
  return (options) => new SimulatedRequest(options, send) as unknown as ClientRequest;
}

class SimulatedRequest extends EventEmitter {
  path: string;
  readonly reusedSocket = false;
  readonly #options: RequestOptions;
  readonly #send: Send;
  #isClosed = false;
  #answer: Readable | undefined;

  constructor(options: RequestOptions, send: Send) {
    super();
    this.#options = options;
    this.#send = send;
    this.path = options.path ?? "/";
    const { signal } = options;
    const abort = (): void => void this.destroy(new Error("The operation was aborted"));
    signal?.addEventListener("abort", abort, { once: true });
    queueMicrotask(() => {
      if (signal?.aborted) abort();
      else if (!this.#isClosed) this.emit("socket", { connecting: false });
    });
  }

  setSocketKeepAlive(): this {
    return this;
  }

  end(body: string | Buffer = ""): this {
    const { method = "GET", host, hostname, port, headers } = this.#options;
    const authority = `${host ?? hostname ?? ""}${port ? `:${port}` : ""}`;
    this.#send({ method, host: authority, path: this.path, headers: plain(headers), body }, this.#client());
    return this;
  }

  destroy(error?: Error): this {
    if (this.#isClosed) return this;
    if (this.#answer) this.#answer.destroy(reset("aborted"));
    else this.emit("error", error ?? reset());
    this.#close();
    return this;
  }

  #client(): Client {
    const isClosed = (): boolean => this.#isClosed;
    return {
      head: (status, headers) => {
        const answer = new Readable({ read: () => {}, destroy: (error, done) => (this.#close(), done(error)) });
        // A reader that has gone must not end the process.
        answer.on("error", () => {});
        this.#answer = answer;
        this.emit("response", Object.assign(answer, { statusCode: status, headers }));
      },
      chunk: (data) => void this.#answer?.push(data),
      end: () => {
        this.#answer?.push(null);
        this.#close();
      },
      fail: (error) => void this.destroy(error),
      get closed() {
        return isClosed();
      },
      onClose: (run) => void this.on("close", run),
    };
  }

  #close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.emit("close");
  }
}

const plain = (headers: RequestOptions["headers"] = {}): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), String(value)]));

/** The server's end: what a handler of node:http gets. */
export function serverEnd({ method, path, headers, body }: Sent, onAnswer: Answering) {
  const message = Object.assign(Readable.from(body.length === 0 ? [] : [Buffer.from(body as string)]), {
    method,
    url: path,
    headers,
    complete: true,
  });
  const response = new SimulatedResponse(onAnswer);
  return {
    message: message as unknown as IncomingMessage,
    response: response as unknown as ServerResponse,
    /** The client has gone. */
    close: () => response.emit("close"),
  };
}

export interface Answering {
  head(status: number, headers: Readonly<Record<string, string>>): void;
  chunk(data: string | Buffer): void;
  end(): void;
  /** The handler broke the connection. */
  destroy(): void;
}

class SimulatedResponse extends EventEmitter {
  statusCode = 200;
  headersSent = false;
  writableEnded = false;
  writableFinished = false;
  readonly #answering: Answering;
  #headers: OutgoingHttpHeaders = {};

  constructor(answering: Answering) {
    super();
    this.#answering = answering;
  }

  setHeader(name: string, value: string | number): this {
    this.#headers[name.toLowerCase()] = value;
    return this;
  }

  writeHead(status: number, headers: OutgoingHttpHeaders = {}): this {
    this.statusCode = status;
    for (const [name, value] of Object.entries(headers)) this.#headers[name.toLowerCase()] = value;
    return this;
  }

  flushHeaders(): void {
    if (this.headersSent) return;
    this.headersSent = true;
    this.#answering.head(this.statusCode, plain(this.#headers));
  }

  write(data: string | Buffer): boolean {
    this.flushHeaders();
    this.#answering.chunk(data);
    return true;
  }

  end(data?: string | Buffer): this {
    if (this.writableEnded) return this;
    this.flushHeaders();
    if (data !== undefined) this.#answering.chunk(data);
    this.writableEnded = true;
    this.writableFinished = true;
    this.#answering.end();
    this.emit("close");
    return this;
  }

  destroy(): this {
    if (this.writableEnded) return this;
    this.writableEnded = true;
    this.#answering.destroy();
    this.emit("close");
    return this;
  }
}

/**
 * Requests to this API server: each is served once what happens now has ended. A watch tells of a write after the
 * write's own answer.
 */
export const openTo = (api: Api): OpenRequest =>
  openOver((sent, client) => {
    const isWatch = sent.path.includes("watch=");
    const later = (run: () => void): void => (isWatch ? void setImmediate(run) : run());
    setImmediate(() => {
      if (client.closed) return;
      const { message, response, close } = serverEnd(sent, {
        head: (status, headers) => client.head(status, headers),
        chunk: (data) => later(() => client.chunk(data)),
        end: () => later(() => client.end()),
        destroy: () => client.fail(reset()),
      });
      client.onClose(close);
      void serve(api, message, response);
    });
  });
