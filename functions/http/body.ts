/** The body of a request: bounded, in time, UTF-8 and JSON; anything else is refused with a status and a reason. */
import { isUtf8 } from "node:buffer";
import type { IncomingMessage } from "node:http";
import { unlessAborted } from "../../infra/deadline.ts";
import { messageOf } from "../../infra/errors.ts";
import { refuse } from "./review.ts";

/** As large as a request of the API server's clients may be. */
export const LARGEST_BODY = 3 * 1024 * 1024;

/** An HTTP answer that is no AdmissionReview. */
export interface Refusal {
  readonly status: number;
  readonly message: string;
}

export interface Body {
  readonly value: unknown;
  readonly bytes: number;
}

/** Of all bodies that are still coming in: senders that never end must not fill the memory. */
const MOST_BUFFERED = 48 * 1024 * 1024;
let buffered = 0;

const TOO_MUCH: Refusal = { status: 429, message: "too many bodies at once, try again" };
const TOO_LARGE: Refusal = { status: 413, message: `the body is larger than ${LARGEST_BODY} bytes` };

/** Reads it all; rejects when `signal` fires or the caller goes away. */
export async function readBody(request: IncomingMessage, signal: AbortSignal): Promise<Body | Refusal> {
  if (Number(request.headers["content-length"] ?? 0) > LARGEST_BODY) return TOO_LARGE;
  if (buffered > MOST_BUFFERED) return TOO_MUCH;
  let held = 0;
  const hold = (bytes: number): void => {
    held += bytes;
    buffered += bytes;
  };
  try {
    const raw = await unlessAborted(collect(request, hold), signal);
    return raw === undefined ? TOO_LARGE : parse(raw);
  } finally {
    buffered -= held;
  }
}

/** Listens rather than iterates: an iterator that is left early takes the connection, and with it the answer, away. */
function collect(request: IncomingMessage, hold: (bytes: number) => void): Promise<Buffer | undefined> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    request.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes <= LARGEST_BODY) {
        chunks.push(chunk);
        hold(chunk.length);
      } else {
        chunks.length = 0;
        resolve(undefined);
      }
    });
    request.on("end", () => resolve(Buffer.concat(chunks, bytes)));
    request.on("error", reject);
    request.on("close", () => {
      if (!request.complete) reject(new Error("the caller went away"));
    });
  });
}

function parse(raw: Buffer): Body | Refusal {
  if (!isUtf8(raw)) return { status: 400, message: refuse("it is not UTF-8").problem };
  try {
    return { value: JSON.parse(raw.toString()), bytes: raw.length };
  } catch (error) {
    return { status: 400, message: refuse(messageOf(error)).problem };
  }
}
