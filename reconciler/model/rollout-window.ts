/**
 * The times at which the rollout may take serving pods of a zone (§1.12), by the annotations of its StatefulSet. A
 * window that cannot be read is closed: it is unknown when its author wanted it open.
 *
 *   outside its window, or in a freeze     closed; the time of its opening is known
 *   unreadable, or it never opens          closed, until somebody corrects it
 *   otherwise, and without annotations     open
 */
import { parseGoDuration } from "../../infra/duration.ts";
import { findNear } from "../../infra/edit-distance.ts";
import { onceForLast } from "../../infra/once.ts";
import { formatTimestamp, parseTimestamp } from "../../infra/timestamp.ts";
import { ANNOTATIONS, MAX_VALUE_LENGTH } from "./annotations.ts";
import type { Hold } from "./decision.ts";
import { endOf, isWithin, lastOccurrence, nextOccurrence, parseWindow, type Problem, type Window } from "./window.ts";

/** From its start until before its end, milliseconds since the epoch. */
interface Freeze {
  readonly from: number;
  readonly to: number;
}

/**
 * The annotations of a window as they are written, trimmed; "" for each that is not set. It is parsed only where a pod
 * is about to go, or somebody asks for its problem or its opening: whoever may write StatefulSets may write thousands.
 */
export interface WrittenWindow {
  readonly cron: string;
  readonly duration: string;
  readonly timeZone: string;
  readonly freezes: string;
}

interface RolloutWindow {
  /** Undefined: open except in freezes. */
  readonly window: Window | undefined;
  readonly freezes: readonly Freeze[];
  /** Why it cannot be read, in a sentence: it is closed. */
  readonly problem: string | undefined;
}

/** Why a window is closed, in the words of a hold. */
export interface ClosedWindow extends Pick<Hold, "reason" | "message"> {
  /** When it opens; undefined if time alone does not open it. */
  readonly until?: number;
}

interface WindowSettings {
  /** Undefined without any annotation of a window. */
  readonly window: WrittenWindow | undefined;
  /** The problems of the annotations, a sentence each, without that of the window itself (`findWindowProblem`). */
  readonly problems: readonly string[];
}

type Strings = Readonly<Record<string, string>> | undefined;

const WINDOW = ANNOTATIONS.rolloutWindow;
const DURATION = ANNOTATIONS.rolloutWindowDuration;
const TIME_ZONE = ANNOTATIONS.rolloutWindowTimeZone;
const FREEZES = ANNOTATIONS.rolloutFreezes;
const PREFIX = "zonewise.dev/rollout-";
const KNOWN: ReadonlySet<string> = new Set(Object.values(ANNOTATIONS));

const bare = (key: string): string => key.slice(key.indexOf("/") + 1);
/** What a name may mean, by its part after the prefix, which may be the wrong one. */
const MEANT: ReadonlyMap<string, string> = new Map(Object.values(ANNOTATIONS).map((key) => [bare(key), key]));

/** Names that are compared with those that there are. */
const MAX_UNKNOWN = 3;
/** Characters of a value. A longer one is no window. */
const MAX_LENGTH = MAX_VALUE_LENGTH;
const MAX_DURATION_S = 31 * 86_400;
/** Characters of the years. Each item of their list may take a tenth of a millisecond: there are 10,000 years. */
const MAX_YEARS_LENGTH = 50;
/** Windows that are remembered, of 160 kB and more each: parsing one takes half a millisecond. */
const MAX_REMEMBERED = 64;
/** Problems that are remembered: they are asked for in every tick. */
const MAX_PROBLEMS = 4096;

/** Reads the annotations of a window. An empty value counts as not set. */
export function readRolloutWindow(annotations: Strings): WindowSettings {
  const read = (name: string): string => annotations?.[name]?.trim() ?? "";
  const written = { cron: read(WINDOW), duration: read(DURATION), timeZone: read(TIME_ZONE), freezes: read(FREEZES) };
  const useless = written.cron === "" ? [DURATION, TIME_ZONE].filter((name) => read(name) !== "") : [];
  return {
    window: written.cron + written.freezes === "" ? undefined : written,
    problems: [
      ...useless.map((name) => `annotation ${name} has no effect without ${WINDOW}`),
      ...findUnknown(annotations),
    ],
  };
}

/** A mistyped name would leave a zone without the window that its author relies on. */
function findUnknown(annotations: Strings): string[] {
  const unknown = Object.keys(annotations ?? {}).filter((name) => name.startsWith(PREFIX) && !KNOWN.has(name));
  return unknown.slice(0, MAX_UNKNOWN).map((name) => {
    const [near] = findNear(bare(name), [...MEANT.keys()]).flatMap((one) => MEANT.get(one) ?? []);
    return `annotation ${name} is not known${near === undefined ? "" : `; is ${near} meant?`}`;
  });
}

const keyOf = ({ cron, duration, timeZone, freezes }: WrittenWindow): string =>
  JSON.stringify([cron, duration, timeZone, freezes]);

const parseOnce = onceForLast(MAX_REMEMBERED, parse, keyOf);
const problemOnce = onceForLast(MAX_PROBLEMS, (written: WrittenWindow) => parseOnce(written).problem, keyOf);

/** Why the window cannot be read, in a sentence; undefined if it can, or there is none. */
export const findWindowProblem = (written: WrittenWindow | undefined): string | undefined =>
  written && problemOnce(written);

const invalidAnnotation = (name: string, value: string, why: string): Problem => ({
  problem: `annotation ${name} is "${value.slice(0, MAX_LENGTH)}": ${why}`,
});

/** Annotations that cannot be read give a window with a problem. */
function parse(written: WrittenWindow): RolloutWindow {
  const freezes = parseFreezes(written.freezes);
  if ("problem" in freezes) return { window: undefined, freezes: [], ...freezes };
  const window = written.cron === "" ? undefined : parseTimes(written);
  if (window && "problem" in window) return { window: undefined, freezes, ...window };
  return { window, freezes, problem: undefined };
}

function parseTimes({ cron, duration, timeZone }: WrittenWindow): Window | Problem {
  if (cron.length > MAX_LENGTH) return invalidAnnotation(WINDOW, cron, `it has more than ${MAX_LENGTH} characters`);
  const [, , , , , , years = ""] = cron.split(/\s+/);
  if (years.length > MAX_YEARS_LENGTH)
    return invalidAnnotation(WINDOW, cron, `its years have more than ${MAX_YEARS_LENGTH} characters`);
  const durationSeconds = readSeconds(duration);
  if (Number.isNaN(durationSeconds))
    return invalidAnnotation(DURATION, duration, "it must be a duration from 1s to 744h, such as 3h");
  const spec = { cron, timeZone: timeZone || "UTC", lastStartSeconds: 0, durationSeconds };
  const window = parseWindow(spec);
  if (!("problem" in window)) return checkDuration(window, duration);
  return "problem" in parseWindow({ ...spec, timeZone: "UTC" })
    ? invalidAnnotation(WINDOW, cron, explain(cron, window.problem))
    : invalidAnnotation(TIME_ZONE, timeZone, "it is not an IANA time zone, such as Europe/Berlin");
}

/** Undefined without a duration, NaN for a value that is none. */
function readSeconds(duration: string): number | undefined {
  if (duration === "") return undefined;
  const seconds = (parseGoDuration(duration) ?? 0) / 1000;
  return seconds >= 1 && seconds <= MAX_DURATION_S ? seconds : Number.NaN;
}

function checkDuration(window: Window, duration: string): Window | Problem {
  const { cron, kind, durationSeconds } = window;
  if (kind === "one-shot" && durationSeconds === undefined)
    return invalidAnnotation(WINDOW, cron, `it needs ${DURATION}: how long the window stays open`);
  if (kind === "windowed" && durationSeconds !== undefined)
    return invalidAnnotation(
      DURATION,
      duration,
      `the window is open in every second that "${cron}" matches: remove one of the two`,
    );
  return window;
}

/** CronJobs have five fields. */
function explain(cron: string, problem: string): string {
  const fields = cron.split(/\s+/).length;
  if (fields === 6 || fields === 7 || cron.startsWith("@")) return problem;
  return `it has ${fields} fields; there must be 6 or 7: second minute hour day month weekday [year]`;
}

/** Intervals as in ISO 8601, such as `2026-12-20T00:00:00Z/2027-01-04T00:00:00Z`. */
function parseFreezes(text: string): readonly Freeze[] | Problem {
  if (text.length > MAX_LENGTH) return invalidAnnotation(FREEZES, text, `it has more than ${MAX_LENGTH} characters`);
  const read = text === "" ? [] : text.split(",").map((one) => parseFreeze(one.trim()));
  const bad = read.find((one) => typeof one === "string");
  return bad === undefined ? read.filter((one) => typeof one !== "string") : invalidAnnotation(FREEZES, text, bad);
}

function parseFreeze(text: string): Freeze | string {
  const [from, to, ...rest] = text.split("/").map(parseTimestamp);
  if (from === undefined || to === undefined || rest.length > 0)
    return `"${text}" is not an interval such as 2026-12-20T00:00:00Z/2027-01-04T00:00:00Z`;
  return from < to ? { from, to } : `"${text}" ends before it begins`;
}

/** Why the window is closed at `now` (milliseconds since the epoch); undefined if it is open. */
export function findClosedWindow(written: WrittenWindow | undefined, now: number): ClosedWindow | undefined {
  if (!written) return undefined;
  const rollout = parseOnce(written);
  const last = closed.get(rollout);
  if (last && last.from <= now && now < last.to) return last.answer;
  const answer = judgeClosed(rollout, now);
  // A freeze that begins or ends changes the message.
  const changes = rollout.freezes.flatMap(({ from, to }) => [from, to]).filter((at) => at > now);
  if (answer) closed.set(rollout, { answer, from: now, to: Math.min(answer.until ?? Infinity, ...changes) });
  return answer;
}

/**
 * The last answer, and the times for which it holds. If few times match, as in the hour that a change of the clocks
 * skips, an answer takes a tenth of a second, and each waiting zone is asked in every tick.
 */
const closed = new WeakMap<RolloutWindow, { answer: ClosedWindow; from: number; to: number }>();

function judgeClosed(rollout: RolloutWindow, now: number): ClosedWindow | undefined {
  const { window, problem } = rollout;
  if (problem !== undefined) return { reason: "WindowInvalid", message: problem };
  const frozen = findFreeze(rollout, now);
  if (!frozen && (!window || isOpen(window, now))) return undefined;
  const until = opensAt(rollout, now);
  const named = window && `window ${window.cron} (${window.timeZone})`;
  if (until === undefined) return { reason: "WindowInvalid", message: `${named} does not open in the next 10 years` };
  const at = formatTimestamp(until);
  return frozen
    ? {
        reason: "WindowClosed",
        until,
        message: `a freeze lasts until ${formatTimestamp(frozen.to)}, and the rollout continues at ${at}`,
      }
    : { reason: "WindowClosed", until, message: `${named} is closed, and opens at ${at}` };
}

const findFreeze = ({ freezes }: RolloutWindow, at: number): Freeze | undefined =>
  freezes.find(({ from, to }) => from <= at && at < to);

function isOpen(window: Window, at: number): boolean {
  if (window.kind === "windowed") return isWithin(window, at);
  const fired = lastOccurrence(window, at);
  return fired !== undefined && at < endOf(window, fired);
}

/** The first time from `now` on at which it is open; undefined if there is none. */
function opensAt(rollout: RolloutWindow, now: number): number | undefined {
  const { window, freezes } = rollout;
  let at = now;
  // Each freeze is left once, for a time at which the window is open or for its next occurrence.
  for (let steps = 2 * freezes.length + 2; steps > 0; steps--) {
    const frozen = findFreeze(rollout, at);
    if (!frozen && (!window || isOpen(window, at))) return at;
    const next = frozen ? frozen.to : window && nextOccurrence(window, at);
    if (next === undefined) return undefined;
    at = next;
  }
  return at;
}
