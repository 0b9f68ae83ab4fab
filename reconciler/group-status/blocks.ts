/** The reasons that keep a group from its rollout, or from scaling. */
import { formatTimestamp } from "../../infra/timestamp.ts";
import { dedupKeyOf, type Hold } from "../model/decision.ts";
import type { GroupFacts, StatusInput } from "./facts.ts";
import type { Block } from "./status.ts";

/** Bounds of the stored blocks. */
const MAX_MESSAGE_LENGTH = 1000;
const MAX_OBJECTS = 10;
const MAX_BLOCKS = 20;

/** A message as it is stored. */
export const shorten = (message: string): string =>
  message.length > MAX_MESSAGE_LENGTH ? `${message.slice(0, MAX_MESSAGE_LENGTH - 1)}…` : message;

/** The part of a status's sentence that its blocks, shown beside it, do not repeat; "" if there is none. */
export function withoutBlocks(message: string, blocks: readonly Partial<Block>[]): string {
  const said = blocks.find((block) => block.message !== undefined && message.endsWith(block.message));
  return said?.message === undefined ? message : message.slice(0, -said.message.length).replace(/: $/, "");
}

/** A reason that blocks, without its time. */
interface Reason extends Pick<Hold, "message" | "objects" | "until"> {
  readonly reason: string;
  readonly cause: string;
}

/** The rollout's hold first. A cause that was there before keeps its time. */
export function describeBlocks({ facts, earlier, now }: StatusInput): Block[] {
  const since = new Map((earlier.blocked ?? []).map((block) => [block.cause, block.since]));
  return reasonsOf(facts)
    .slice(0, MAX_BLOCKS)
    .map(({ reason, message, cause, objects, until }) => ({
      reason,
      message: shorten(message),
      cause,
      objects: objects.slice(0, MAX_OBJECTS).map(({ kind, name }) => ({ kind, name })),
      since: since.get(cause) ?? formatTimestamp(now),
      ...(until !== undefined && { nextCheck: formatTimestamp(until) }),
    }));
}

/** An error is no hold, but it blocks too. */
function reasonsOf({ state, message, hold, scalingHolds }: GroupFacts): Reason[] {
  const failed =
    state === "failed" ? [{ reason: "ReconcileFailed", cause: "ReconcileFailed", message, objects: [] }] : [];
  const holds = [...(hold ? [hold] : []), ...scalingHolds];
  return [...failed, ...holds.map((one) => ({ ...one, cause: shorten(dedupKeyOf(one)) }))];
}
