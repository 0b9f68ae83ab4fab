/**
 * The answer of a responder to an Eviction (§19). It never deletes and never evicts: it says why the pod stays and
 * until when, and once its budget allows the eviction it says so and steps back. The controller then makes the next
 * responder active, by default the one that calls `pods/eviction`, and our webhook judges that call as any other.
 *
 *   our turn --budget denies--> heartbeat, reason, expected end --again every minute, sooner if the reason changes--> ...
 *            --budget allows, and the pod is reserved--> completed: the next responder's turn
 *            --pod is gone--> completed
 *            --withdrawn, or no verdict--> nothing: the controller cancels, or counts the deadline of our heartbeat
 */
import { CLOCK_SKEW_MS, formatTimestamp, parseTimestamp } from "../../infra/timestamp.ts";
import { hasCode } from "../../infra/errors.ts";
import { type DisruptionResult, isAllowed, type Verdict, type VerdictReason } from "../budget/verdict.ts";
import type { Eviction, ResponderStatus } from "./eviction.ts";

export type Answer =
  /** `message` is for the requesters; `expectedAt` in milliseconds since the epoch, undefined if nobody knows. */
  | { readonly answer: "wait"; readonly message: string; readonly expectedAt: number | undefined }
  | { readonly answer: "stepBack"; readonly why: "allowed" | "gone" | "notAPod"; readonly message: string };

/**
 * Milliseconds between two heartbeats. The API asks for no more than one in 20 s, and hands the Eviction on after 20
 * minutes without any: a reconciler that is away for less loses nothing.
 */
export const HEARTBEAT_MS = 60_000;
export const LEAST_HEARTBEAT_MS = 20_000;

/** Characters of a message, by the API. */
const MAX_MESSAGE_LENGTH = 4000;

/** The pod that is asked about is not there any more, or is another one. */
const GONE: ReadonlySet<VerdictReason> = new Set(["PodNotFound", "OtherPod"]);

/** True if it has to be answered: somebody still wants it, and it is our turn. */
export const isAsked = ({ isOurTurn, requesters }: Eviction): boolean => isOurTurn && requesters.length > 0;

/** The answer without a verdict: a target that is no pod is left to others. */
export function answerWithoutVerdict({ pod }: Eviction): Answer | undefined {
  if (pod) return undefined;
  const message = "the target is no pod: left to the next responder";
  return { answer: "stepBack", why: "notAPod", message };
}

/**
 * Undefined if no verdict was found and that is a fault: nothing is written, and the heartbeat's deadline goes on. The
 * budget's reason and words are those of the eviction webhook and of `zonewise explain`.
 */
export function answerVerdict(result: DisruptionResult): Answer | undefined {
  const { outcome, verdict } = result;
  if (outcome === "undecided" && !hasCode(result.cause, "Conflict")) return undefined;
  if (GONE.has(verdict.reason))
    return { answer: "stepBack", why: "gone", message: `${verdict.reason}: there is no such pod any more` };
  if (!isAllowed(verdict)) return { answer: "wait", message: describe(verdict), expectedAt: undefined };
  const message = `${describe(verdict)}; it may be evicted now, and the next responder does it by pods/eviction`;
  return { answer: "stepBack", why: "allowed", message: message.slice(0, MAX_MESSAGE_LENGTH) };
}

const describe = ({ reason, message }: Verdict): string => `${reason}: ${message}`.slice(0, MAX_MESSAGE_LENGTH);

/**
 * True if the answer is to be written now: a wait is written again only when its heartbeat is due, or its content has
 * changed.
 */
export function isDue({ own }: Eviction, answer: Answer, now: number): boolean {
  if (answer.answer === "stepBack") return true;
  const since = now - (parseTimestamp(own.heartbeatTime ?? "") ?? -Infinity);
  if (since >= HEARTBEAT_MS) return true;
  const expectedAt = parseTimestamp(own.expectedCompletionTime ?? "");
  const isNews = own.message !== answer.message || (expectedAt !== undefined && expectedAt <= now);
  return since >= LEAST_HEARTBEAT_MS && isNews;
}

/**
 * Our status with the answer. Times are the present, as the API demands, but never before the start that the
 * controller has written, nor before the previous heartbeat: clocks differ. An expected end that would be in the past
 * is left out.
 */
export function statusOf({ own }: Eviction, answer: Answer, now: number): ResponderStatus {
  const { expectedCompletionTime: _, ...kept } = own;
  const earlier = [own.startTime, own.heartbeatTime].map((text) => parseTimestamp(text ?? "") ?? 0);
  const at = formatTimestamp(Math.max(now, ...earlier.map(wholeSeconds)));
  const { message } = answer;
  if (answer.answer === "stepBack") return { ...kept, message, completionTime: at };
  const { expectedAt } = answer;
  const isAhead = expectedAt !== undefined && expectedAt > Math.max(now + CLOCK_SKEW_MS, ...earlier);
  return {
    ...kept,
    message,
    heartbeatTime: at,
    ...(isAhead && { expectedCompletionTime: formatTimestamp(wholeSeconds(expectedAt)) }),
  };
}

/** Up to a whole second, as times are written to the second. */
const wholeSeconds = (ms: number): number => Math.ceil(ms / 1000) * 1000;
