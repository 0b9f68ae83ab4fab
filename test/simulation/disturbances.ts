/** What befalls calls beside the faults that a seed draws: incidents have it so, for a while. */
import type { Answering, Sent } from "../emulator/in-process.ts";

export interface Disturbance {
  /** A read shows the store as of this version. */
  readonly version?: number;
  /** It is refused with 500 and has no effect. */
  readonly isRefused?: boolean;
  /** What takes effect is answered with 500 and this message. */
  readonly unsaid?: string;
  /** The body ends in the middle, as if it were whole. */
  readonly isShort?: boolean;
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
export function answerDisturbed(to: Answering, { unsaid, isShort, aheadMs }: Disturbance): Answering {
  let isOver = false;
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
      if (!isOver) to.chunk(isShort ? data.slice(0, Math.floor(data.length / 2)) : data);
      if (isShort) end();
    },
    end,
  };

  function end(): void {
    if (!isOver) to.end();
    isOver = true;
  }
}

const FAILURE = { kind: "Status", apiVersion: "v1", status: "Failure", code: 500, reason: "InternalError" };
