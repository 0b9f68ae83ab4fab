/** Watches: a stream of JSON lines, each an event, used as a hint. */
import type { IncomingMessage } from "node:http";
import { errorOfCall, errorOfStatus, isStatus } from "./api-error.ts";
import type { Clock } from "../clock.ts";
import { startDeadline } from "../deadline.ts";
import { RolloutError } from "../errors.ts";
import { type ApiCall, openAnswer, type Wiring } from "./request.ts";

export interface Hint {
  readonly type: "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK";
  readonly namespace: string;
  readonly name: string;
  readonly resourceVersion: string;
  /** RFC 3339. */
  readonly createdAt: string;
  /** Changes with the spec; 0 for kinds without generations. */
  readonly generation: number;
}

/** Receives each event of a watch: its hint, and the requested part of the object. */
export type OnEvent = (hint: Hint, object: unknown) => void;

/** Seconds after which the server ends a watch; a connection that died unnoticed is closed a little later. */
export const WATCH_SECONDS = 300;
const GRACE_MS = 10_000;

/**
 * Streams hints until the server ends the watch or the caller's signal fires; rejects with `Expired` if the version is
 * too old.
 */
export async function streamHints(wiring: Wiring, call: ApiCall, onEvent: OnEvent): Promise<void> {
  try {
    const answer = await openStream(wiring, call);
    using lifetime = startDeadline(WATCH_SECONDS * 1000 + GRACE_MS, call.signal, wiring.clock);
    lifetime.signal.addEventListener("abort", () => answer.destroy(), { once: true });
    if (lifetime.signal.aborted) answer.destroy();
    const lines = splitLines();
    for await (const chunk of answer) {
      for (const line of lines(chunk)) {
        const { type, object } = readEvent(line);
        onEvent(readHint(type, object), object);
      }
    }
  } catch (error) {
    if (!call.signal?.aborted) throw errorOfCall(call.what, error);
  }
}

// The stream lasts longer than the deadline of its opening.
async function openStream(wiring: Wiring, call: ApiCall): Promise<IncomingMessage> {
  using opening = startDeadline(call.deadlineMs, call.signal, wiring.clock);
  return await openAnswer(wiring, call, opening);
}

/** Splits chunks of UTF-8 into whole lines, wherever the chunk boundaries are. */
export function splitLines(): (chunk: Uint8Array) => string[] {
  const decoder = new TextDecoder();
  let rest = "";
  return (chunk) => {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    return lines.filter((line) => line !== "");
  };
}

interface WireEvent {
  readonly type: Hint["type"] | "ERROR";
  readonly object: {
    readonly metadata?: Partial<Record<"namespace" | "name" | "resourceVersion" | "creationTimestamp", string>> & {
      readonly generation?: number;
    };
  };
}

function readEvent(line: string): { readonly type: Hint["type"]; readonly object: WireEvent["object"] } {
  const { type, object } = parseEvent(line);
  if (type === "ERROR") throw errorOfStatus(isStatus(object) ? (object.code ?? 500) : 500, JSON.stringify(object));
  return { type, object };
}

function readHint(type: Hint["type"], object: WireEvent["object"]): Hint {
  const { namespace = "", name = "", resourceVersion = "", generation = 0 } = object.metadata ?? {};
  const createdAt = object.metadata?.creationTimestamp ?? "";
  return { type, namespace, name, resourceVersion, createdAt, generation };
}

function parseEvent(line: string): WireEvent {
  try {
    return JSON.parse(line) as WireEvent;
  } catch (cause) {
    throw new RolloutError("ServerError", `a line of the watch is not JSON: ${line.slice(0, 100)}`, { cause });
  }
}

/** Milliseconds until a watch that has ended, or has failed, is opened again. */
const REOPEN_MS = 1000;
const REOPEN_FAILED_MS = 5000;

interface KeptOpen {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Called whenever it has ended or failed. */
  readonly onCut: () => void;
}

/** Opens a watch again and again until `signal` fires; never rejects. */
export async function keepOpen(open: () => Promise<void>, { clock, signal, onCut }: KeptOpen): Promise<void> {
  while (!signal.aborted) {
    const pauseMs = await open().then(
      () => REOPEN_MS,
      () => REOPEN_FAILED_MS,
    );
    onCut();
    await clock.sleep(pauseMs, signal);
  }
}
