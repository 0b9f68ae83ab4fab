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
  #answer: SimulatedAnswer | undefined;

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
        this.#answer = new SimulatedAnswer(status, headers, () => this.#close());
        this.emit("response", this.#answer);
      },
      chunk: (data) => this.#answer?.push(data),
      end: () => {
        this.#answer?.end();
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

const premature = (): Error => Object.assign(new Error("Premature close"), { code: "ERR_STREAM_PREMATURE_CLOSE" });

/** What clients read of an answer: its head, and chunks one after the other, a tenth of the cost of a stream. */
class SimulatedAnswer implements AsyncIterableIterator<string | Buffer, undefined> {
  readonly statusCode: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly #onClose: () => void;
  readonly #chunks: (string | Buffer)[] = [];
  #isText = false;
  /** Why no more chunks come; undefined while some may. */
  #end: { readonly error: Error | undefined } | undefined;
  #wake: (() => void) | undefined;

  constructor(status: number, headers: Readonly<Record<string, string>>, onClose: () => void) {
    this.statusCode = status;
    this.headers = headers;
    this.#onClose = onClose;
  }

  setEncoding(_encoding: "utf8"): this {
    this.#isText = true;
    return this;
  }

  push(chunk: string | Buffer): void {
    if (this.#end || chunk.length === 0) return;
    this.#chunks.push(chunk);
    this.#wake?.();
  }

  end(): void {
    this.#end ??= { error: undefined };
    this.#wake?.();
  }

  destroy(error: Error = premature()): this {
    if (this.#end && this.#chunks.length === 0) return this;
    this.#chunks.length = 0;
    this.#end = { error };
    this.#wake?.();
    this.#onClose();
    return this;
  }

  async next(): Promise<IteratorResult<string | Buffer, undefined>> {
    for (;;) {
      const chunk = this.#chunks.shift();
      if (chunk !== undefined) return { done: false, value: this.#decode(chunk) };
      if (this.#end?.error) throw this.#end.error;
      if (this.#end) return { done: true, value: undefined };
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }

  async return(): Promise<IteratorResult<string | Buffer, undefined>> {
    this.destroy();
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  // Each chunk has whole characters.
  #decode(chunk: string | Buffer): string | Buffer {
    if (this.#isText) return typeof chunk === "string" ? chunk : chunk.toString();
    return typeof chunk === "string" ? Buffer.from(chunk) : chunk;
  }
}

const plain = (headers: RequestOptions["headers"] = {}): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), String(value)]));

/** Lets the API server answer the request; returns what tells it that the client has gone. */
export function serveSent(api: Api, { method, path, headers, body }: Sent, onAnswer: Answering): () => void {
  const response = new SimulatedResponse(onAnswer);
  const toArray = async (): Promise<readonly Buffer[]> => (body.length === 0 ? [] : [Buffer.from(body as string)]);
  void serve(api, { method, url: path, headers, toArray }, response as unknown as ServerResponse);
  return () => response.emit("close");
}

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
      const answering: Answering = {
        head: (status, headers) => client.head(status, headers),
        chunk: (data) => later(() => client.chunk(data)),
        end: () => later(() => client.end()),
        destroy: () => client.fail(reset()),
      };
      client.onClose(serveSent(api, sent, answering));
    });
  });
