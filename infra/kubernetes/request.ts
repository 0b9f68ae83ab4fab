/** One call of the Kubernetes API from first token to parsed answer: rate limit, deadline, throttling, errors, measurement. */
import type { IncomingMessage } from "node:http";
import { describePath, groupOf } from "./api-path.ts";
import { errorOfCall, errorOfStatus } from "./api-error.ts";
import { type Clock, startStopwatch } from "../clock.ts";
import type { Connection } from "./connection.ts";
import { type Deadline, startDeadline } from "../deadline.ts";
import { RolloutError } from "../errors.ts";
import { PROTOBUF } from "./protobuf.ts";
import type { RateLimiter } from "./rate-limit.ts";
import type { OnDate } from "../server-clock.ts";
import { openExchange, readBytes, readText, type WireRequest } from "./transport.ts";

/** Told of every exchange. */
export interface Observer {
  /** `status` is the HTTP status, or `error` when there was no answer; `seconds` until the head of the answer, waits for tokens excluded. */
  answered(call: { readonly path: string; readonly method: string; readonly status: string; readonly seconds: number }): void;
  /** A call was not sent, for want of a token. */
  rateLimited(group: string): void;
}

export interface Wiring {
  readonly connection: Connection;
  /** The machine's: what a call may take is no matter of the server's clock. */
  readonly clock: Clock;
  readonly limiter: RateLimiter;
  readonly observer: Observer | undefined;
  readonly onDate?: OnDate | undefined;
}

export interface ApiCall extends Omit<WireRequest, "path"> {
  /** Verb, resource, namespace and name, for errors. */
  readonly what: string;
  readonly path: string;
  readonly query: Readonly<Record<string, string | undefined>>;
  readonly deadlineMs: number;
  readonly signal: AbortSignal | undefined;
  /** For an answer in protobuf. */
  readonly decode?: (bytes: Buffer) => unknown;
}

/** Sends the call and resolves with the object in its answer; rejects with a RolloutError and nothing else. */
export async function requestObject(wiring: Wiring, call: ApiCall): Promise<unknown> {
  using deadline = startDeadline(call.deadlineMs, call.signal, wiring.clock);
  try {
    const answer = await openAnswer(wiring, call, deadline);
    return parseBody(await readBody(answer, deadline.signal), call.decode);
  } catch (error) {
    throw errorOfCall(call.what, error);
  }
}

/**
 * The head of a successful answer. A 429 with Retry-After is waited out and repeated inside the deadline, writes too:
 * the server has executed nothing. Nothing else is repeated, as a write may have taken effect.
 */
export async function openAnswer(wiring: Wiring, call: ApiCall, deadline: Deadline): Promise<IncomingMessage> {
  for (;;) {
    await takeToken(wiring, groupOf(call.path), deadline);
    deadline.signal.throwIfAborted();
    const answer = await measure(wiring, call, deadline);
    const status = answer.statusCode ?? 0;
    if (status < 300) return answer;
    const error = errorOfStatus(status, await readBody(answer, deadline.signal), retryAfterMs(answer));
    if (error.code !== "Throttled" || error.retryAfterMs === undefined || error.retryAfterMs >= deadline.remainingMs()) throw error;
    await wiring.clock.sleep(error.retryAfterMs, deadline.signal);
    deadline.signal.throwIfAborted();
  }
}

async function takeToken({ limiter, observer }: Wiring, group: string, deadline: Deadline): Promise<void> {
  try {
    await limiter.take(group, deadline.remainingMs(), deadline.signal);
  } catch (error) {
    observer?.rateLimited(group);
    throw error;
  }
}

async function measure({ connection, clock, observer, onDate }: Wiring, call: ApiCall, deadline: Deadline): Promise<IncomingMessage> {
  const start = clock.monotonic();
  const elapsed = startStopwatch(clock);
  const done = (status: string): void =>
    observer?.answered({ path: describePath(call.path), method: call.method, status, seconds: (clock.monotonic() - start) / 1000 });
  try {
    const answer = await openExchange(connection, { ...call, path: withQuery(call) }, deadline);
    done(String(answer.statusCode));
    if (isOfApiServer(answer)) onDate?.(answer.headers.date, elapsed());
    return answer;
  } catch (error) {
    done("error");
    throw error;
  }
}

function withQuery({ path, query }: ApiCall): string {
  const set = Object.entries(query).filter((pair): pair is [string, string] => pair[1] !== undefined);
  return set.length === 0 ? path : `${path}?${new URLSearchParams(set).toString()}`;
}

// What a proxy says for want of an API server has the proxy's time.
const isOfApiServer = ({ statusCode = 0 }: IncomingMessage): boolean => statusCode < 500;

// Kubernetes sends seconds only, never a date: https://kubernetes.io/docs/concepts/cluster-administration/flow-control/
function retryAfterMs(answer: IncomingMessage): number | undefined {
  const header = answer.headers["retry-after"];
  return header !== undefined && /^\d+$/.test(header) ? Number(header) * 1000 : undefined;
}

/** Bytes of protobuf, which failures of calls that ask for it are in as well; otherwise text. */
function readBody(answer: IncomingMessage, signal: AbortSignal): Promise<Buffer | string> {
  return answer.headers["content-type"]?.startsWith(PROTOBUF) ? readBytes(answer, signal) : readText(answer, signal);
}

function parseBody(body: Buffer | string, decode: ApiCall["decode"]): unknown {
  try {
    if (typeof body === "string") return JSON.parse(body);
    if (decode) return decode(body);
  } catch (cause) {
    throw new RolloutError("ServerError", describeUnread(body), { cause });
  }
  throw new RolloutError("ServerError", describeUnread(body));
}

const describeUnread = (body: Buffer | string): string =>
  typeof body === "string" ? `the answer is not JSON: ${body.slice(0, 100)}` : "the answer is not the protobuf that was asked for";
