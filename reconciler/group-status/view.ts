/** What the record of a group means to a person: one view, for the command line and the status page. Pure. */
import { formatTimestamp, parseTimestamp } from "../../infra/timestamp.ts";
import { findClosedWindow } from "../model/rollout-window.ts";
import type { GroupProgress, RemainingStep, RolloutGroupStatus, StoredHold, ZoneRow } from "./status.ts";
import { windowOf } from "./zones.ts";

/** `blocked`: somebody must act. `waiting`: a user asked for the wait, or time ends it. `moving`: no action needed. */
export type Standing = "blocked" | "waiting" | "moving" | "done";

/** In the order in which they are shown. */
const STANDINGS: readonly Standing[] = ["blocked", "waiting", "moving", "done"];

interface RecordedGroup {
  /** As recorded; undefined if nothing is. */
  readonly status: Partial<RolloutGroupStatus> | undefined;
  /** The record is of the zones in their present state. */
  readonly isSeen: boolean;
  /** The reconciler does not tick. */
  readonly isOld: boolean;
}

export interface ShownGroup {
  readonly standing: Standing;
  /** Its rollout is complete, though it may still wait to be scaled. */
  readonly isReady: boolean;
  /** The word for its state: the recorded phase, `Blocked` for a ready group that somebody has to scale, `Unseen`. */
  readonly phase: string;
  readonly isOld: boolean;
  /** Its state in a sentence, and the part of that which its holds do not say. */
  readonly sentence: string;
  readonly besideHolds: string;
  /** What holds it; its rollout first. */
  readonly holds: readonly StoredHold[];
  readonly zones: readonly ZoneRow[];
  readonly pods: { readonly all: number; readonly updated: number };
  readonly plan: readonly RemainingStep[];
  /** When its rollout ends by the estimate, RFC 3339; not while the reconciler does not tick. */
  readonly endsAt: string | undefined;
}

export function viewGroup(record: RecordedGroup): ShownGroup {
  const { status = {}, isOld } = record;
  const { holds = [], zones = [], plan = [], progress } = status;
  const standing = standingOf(record);
  const sentence = describe(record);
  return {
    standing,
    isReady: standing === "done" || (standing === "waiting" && isRecent(record) && status.phase === "Ready"),
    phase: nameOf(record, standing),
    isOld,
    sentence,
    besideHolds: withoutHolds(sentence, holds),
    holds,
    zones,
    pods: { all: sumOf(zones, "replicas"), updated: sumOf(zones, "updated") },
    plan,
    endsAt: isOld ? undefined : endOf(progress),
  };
}

const isRecent = ({ isSeen, isOld }: RecordedGroup): boolean => isSeen && !isOld;

const endOf = (progress: GroupProgress | undefined): string | undefined =>
  progress?.completionTime === undefined ? progress?.estimatedCompletionTime : undefined;

function nameOf({ status, isSeen }: RecordedGroup, standing: Standing): string {
  if (!isSeen) return "Unseen";
  return standing === "blocked" ? "Blocked" : (status?.phase ?? "Unknown");
}

/** §18.1: a "ready" or "blocked" counts only if it was recorded of the zones in their present state. */
function standingOf({ status: { phase, holds = [] } = {}, isSeen, isOld }: RecordedGroup): Standing {
  if (!isSeen) return "waiting";
  if (phase === "Blocked") return "blocked";
  if (isOld) return "waiting";
  if (phase !== "Ready") return phase === "RollingOut" ? "moving" : "waiting";
  if (holds.some((hold) => hold.phase === "Blocked")) return "blocked";
  return holds.length === 0 ? "done" : "waiting";
}

function describe({ status, isSeen, isOld }: RecordedGroup): string {
  if (status === undefined) return "no reconciler has seen it yet";
  if (!isSeen) return "the reconciler has not seen the latest spec yet";
  const { message = "" } = status;
  return isOld ? `before the reconciler stopped: ${message}` : message;
}

/** The part of a status's sentence that its holds, shown beside it, do not repeat; "" if there is none. */
function withoutHolds(message: string, holds: readonly Partial<StoredHold>[]): string {
  const said = holds.find((hold) => hold.message !== undefined && message.endsWith(hold.message));
  return said?.message === undefined ? message : message.slice(0, -said.message.length).replace(/: $/, "");
}

const sumOf = (zones: readonly Partial<ZoneRow>[], what: "replicas" | "updated"): number =>
  zones.reduce((sum, zone) => sum + (zone[what] ?? 0), 0);

/** What is blocked comes first, what is done last; of one standing, what has waited longest. */
export function compareByNeed(
  a: Pick<ShownGroup, "standing"> & Since,
  b: Pick<ShownGroup, "standing"> & Since,
): number {
  return STANDINGS.indexOf(a.standing) - STANDINGS.indexOf(b.standing) || compareText(sinceOf(a), sinceOf(b));
}

interface Since {
  readonly holds: readonly Partial<Pick<StoredHold, "since">>[];
}

const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** Without a hold: `~`, which sorts after all times. */
const sinceOf = ({ holds }: Since): string => holds[0]?.since ?? "~";

/** What a person should know of a zone besides its pods, at `now`: windows and bypasses end without a tick. */
export function notesOf(zone: Partial<ZoneRow>, now: number): string[] {
  const { paused, lastDownscale, gatesBypassedUntil: until, gatesBypassReason: reason } = zone;
  const why = reason === undefined ? "" : ` (${reason})`;
  const closed = findClosedWindow(windowOf(zone), now);
  const opens =
    closed?.until === undefined ? "until its annotation is corrected" : `until ${formatTimestamp(closed.until)}`;
  return [
    ...(paused ? ["paused"] : []),
    ...((parseTimestamp(until ?? "") ?? 0) > now ? [`gates bypassed until ${until}${why}`] : []),
    ...(closed ? [`window closed ${opens}`] : []),
    ...(lastDownscale === undefined ? [] : [`last downscale ${lastDownscale}`]),
  ];
}
