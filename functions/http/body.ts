/** Reads the body of a request: bounded, in time, UTF-8 and JSON; any other is refused with a status and a message. */
import { isUtf8 } from "node:buffer";
import type { IncomingMessage } from "node:http";
import { unlessAborted } from "../../infra/deadline.ts";
import { messageOf } from "../../infra/errors.ts";
import { undecodable } from "./review.ts";

const MIB = 1024 * 1024;
/** Bytes of the largest object that etcd stores, unless it is configured otherwise. */
const ETCD_BYTES = 1.5 * MIB;
/**
 * Bytes of a review: the object twice, before and after, of which JSON may write each byte as six (`\u003c`), and what
 * the API server says of the request.
 */
export const MAX_BODY = 2 * 6 * ETCD_BYTES + MIB / 4;
/**
 * Values and keys of a review. In stored objects each takes 4 bytes on average, or more: the densest are the
 * `managedFields` of variables with short names, with 5. Forged bodies could block the process and fill its memory: an
 * object with one key takes 200 bytes there.
 */
export const MAX_VALUES = (2 * ETCD_BYTES) / 4;

/** An HTTP answer without an AdmissionReview. */
export interface HttpRefusal {
  readonly status: number;
  readonly message: string;
}

interface Body {
  readonly value: unknown;
  readonly bytes: number;
}

/** Bytes of all bodies that are still being received: slow senders must not fill the memory. */
const MAX_BUFFERED = 48 * MIB;

const TOO_MUCH: HttpRefusal = { status: 429, message: "too many bodies at once, try again" };

/** Reads the whole body; rejects when `signal` fires or the caller disconnects. */
export type ReadBody = (request: IncomingMessage, signal: AbortSignal) => Promise<Body | HttpRefusal>;

/** A reader of bodies that bounds them together: one for a process. `largest` is the bound of a body, in bytes. */
export function createBodyReader(largest = MAX_BODY): ReadBody {
  let buffered = 0;
  const tooLarge: HttpRefusal = { status: 413, message: `the body is larger than ${largest} bytes` };
  return async (request, signal) => {
    if (Number(request.headers["content-length"] ?? 0) > largest) return tooLarge;
    let own = 0;
    const take = (bytes: number): HttpRefusal | undefined => {
      own += bytes;
      buffered += bytes;
      if (own > largest) return tooLarge;
      return buffered > MAX_BUFFERED ? TOO_MUCH : undefined;
    };
    try {
      const raw = await unlessAborted(collect(request, take), signal);
      return "status" in raw ? raw : parse(raw);
    } finally {
      buffered -= own;
    }
  };
}

/** Uses events: leaving an async iterator early would destroy the connection before the answer is sent. */
function collect(
  request: IncomingMessage,
  take: (bytes: number) => HttpRefusal | undefined,
): Promise<Buffer | HttpRefusal> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let refusal: HttpRefusal | undefined;
    request.on("data", (chunk: Buffer) => {
      refusal ??= take(chunk.length);
      if (!refusal) return void chunks.push(chunk);
      chunks.length = 0;
      resolve(refusal);
    });
    request.on("end", () => resolve(chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks)));
    request.on("error", reject);
    request.on("close", () => {
      if (!request.complete) reject(new Error("the caller disconnected"));
    });
  });
}

function parse(raw: Buffer): Body | HttpRefusal {
  if (!isUtf8(raw)) return { status: 400, message: undecodable("it is not UTF-8").problem };
  // Each value takes a byte or more.
  if (raw.length > MAX_VALUES && hasMoreValues(raw, MAX_VALUES))
    return { status: 413, message: `the body has more than ${MAX_VALUES} values and keys` };
  try {
    return { value: JSON.parse(raw.toString()), bytes: raw.length };
  } catch (error) {
    return { status: 400, message: undecodable(messageOf(error)).problem };
  }
}

const [QUOTE, BACKSLASH, COMMA, COLON, BRACKET, BRACE] = [...Buffer.from(String.raw`"\,:[{`)];

/** Counts the commas and the beginnings of objects and lists, one before each value or key, and the colons of keys. */
function hasMoreValues(json: Buffer, most: number): boolean {
  let values = 0;
  let isText = false;
  for (let i = 0; i < json.length; i++) {
    const byte = json[i];
    if (byte === QUOTE) isText = !isText;
    else if (isText && byte === BACKSLASH) i++;
    else if (!isText && (byte === COMMA || byte === COLON || byte === BRACKET || byte === BRACE)) values++;
  }
  return values > most;
}
