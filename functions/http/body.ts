/** Reads the body of a request: bounded, in time, UTF-8 and JSON; any other is refused with a status and a message. */
import { isUtf8 } from "node:buffer";
import type { IncomingMessage } from "node:http";
import { unlessAborted } from "../../infra/deadline.ts";
import { messageOf } from "../../infra/errors.ts";
import { refuse } from "./review.ts";

/** Bytes; the API server's own limit on requests. */
export const MAX_BODY = 3 * 1024 * 1024;

/** An HTTP answer without an AdmissionReview. */
export interface HttpRefusal {
  readonly status: number;
  readonly message: string;
}

export interface Body {
  readonly value: unknown;
  readonly bytes: number;
}

/** Bytes of all bodies that are still being received: slow senders must not fill the memory. */
const MAX_BUFFERED = 48 * 1024 * 1024;

const TOO_MUCH: HttpRefusal = { status: 429, message: "too many bodies at once, try again" };

/** Reads the whole body; rejects when `signal` fires or the caller disconnects. */
export type ReadBody = (request: IncomingMessage, signal: AbortSignal) => Promise<Body | HttpRefusal>;

/** A reader of bodies that bounds them together: one for a process. `largest` is the bound of a body, in bytes. */
export function createBodyReader(largest = MAX_BODY): ReadBody {
  let buffered = 0;
  const tooLarge: HttpRefusal = { status: 413, message: `the body is larger than ${largest} bytes` };
  return async (request, signal) => {
    if (Number(request.headers["content-length"] ?? 0) > largest) return tooLarge;
    if (buffered > MAX_BUFFERED) return TOO_MUCH;
    let own = 0;
    const count = (bytes: number): void => {
      own += bytes;
      buffered += bytes;
    };
    try {
      const raw = await unlessAborted(collect(request, largest, count), signal);
      return raw === undefined ? tooLarge : parse(raw);
    } finally {
      buffered -= own;
    }
  };
}

/** Uses events: leaving an async iterator early would destroy the connection before the answer is sent. */
function collect(
  request: IncomingMessage,
  largest: number,
  onBytes: (bytes: number) => void,
): Promise<Buffer | undefined> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    request.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes <= largest) {
        chunks.push(chunk);
        onBytes(chunk.length);
      } else {
        chunks.length = 0;
        resolve(undefined);
      }
    });
    request.on("end", () => resolve(chunks.length === 1 ? chunks[0] : Buffer.concat(chunks, bytes)));
    request.on("error", reject);
    request.on("close", () => {
      if (!request.complete) reject(new Error("the caller disconnected"));
    });
  });
}

function parse(raw: Buffer): Body | HttpRefusal {
  if (!isUtf8(raw)) return { status: 400, message: refuse("it is not UTF-8").problem };
  try {
    return { value: JSON.parse(raw.toString()), bytes: raw.length };
  } catch (error) {
    return { status: 400, message: refuse(messageOf(error)).problem };
  }
}
