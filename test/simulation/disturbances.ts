/** What befalls calls beside the faults that a seed draws: incidents have it so, for a while. */
import { PbfReader } from "pbf";
import type { Answering, Sent } from "../emulator/in-process.ts";
import { MAGIC } from "../emulator/protobuf/write.ts";

export interface Disturbance {
  /** It is refused with 500 and has no effect. */
  readonly isRefused?: boolean;
  /** The same, with this code. */
  readonly refusedWith?: number;
  /** What takes effect is answered with 500 and this message. */
  readonly unsaid?: string;
  /** The body ends in the middle, as if it were whole. */
  readonly isShort?: boolean;
  /** A list in protobuf ends after its first item. */
  readonly hasOneItem?: boolean;
  /** Milliseconds between the head of an answer and its body. */
  readonly bodyLateMs?: number;
  /** Milliseconds by which the clock of the API server that answers is ahead of that of others. */
  readonly aheadMs?: number;
  /** A pod sends the client there. */
  readonly location?: string;
}

/** Undefined for a call that is not disturbed. */
export type Disturb = (actor: string, sent: Sent) => Disturbance | undefined;

/** Answers as the disturbance lets it. */
export function answerDisturbed(to: Answering, { unsaid, isShort, hasOneItem, aheadMs }: Disturbance): Answering {
  let isOver = false;
  const lengthOf = (data: Buffer | string): number => {
    if (isShort) return Math.floor(data.length / 2);
    return hasOneItem && Buffer.isBuffer(data) ? endOfFirstItem(data) : data.length;
  };
  return {
    ...to,
    head(status, headers) {
      const date = new Date(Date.parse(headers["date"] ?? "") + (aheadMs ?? 0));
      const dated = aheadMs === undefined ? headers : { ...headers, date: date.toUTCString() };
      if (unsaid === undefined || status >= 300) return to.head(status, dated);
      to.head(500, { ...dated, "content-type": "application/json" });
      to.chunk(JSON.stringify({ ...FAILURE, message: unsaid }));
      end();
    },
    chunk(data) {
      const length = lengthOf(data);
      if (!isOver) to.chunk(length < data.length ? data.slice(0, length) : data);
      if (length < data.length) end();
    },
    end,
  };

  function end(): void {
    if (!isOver) to.end();
    isOver = true;
  }
}

/** Of what took effect, and is not said to have. */
export const FAILURE = { kind: "Status", apiVersion: "v1", status: "Failure", code: 500, reason: "InternalError" };

const ITEMS = 2;

/** Of a list as the API server sends it: the type, and within the list its metadata before its items. */
function endOfFirstItem(data: Buffer): number {
  if (!data.subarray(0, MAGIC.length).equals(MAGIC)) return data.length;
  const reader = new PbfReader(data);
  reader.pos = MAGIC.length;
  reader.nextField();
  reader.skip(reader.type);
  reader.nextField();
  const end = reader.readVarint() + reader.pos;
  for (let field = 0; field !== ITEMS && reader.pos < end; reader.skip(reader.type)) field = reader.nextField();
  return reader.pos;
}
