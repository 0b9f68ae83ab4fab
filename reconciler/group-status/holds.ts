/** The holds of a group as its status stores them: why its rollout waits, then why zones are not scaled. */
import { formatTimestamp, parseTimestamp } from "../../infra/timestamp.ts";
import { dedupKeyOf, ERROR_BLOCKS_AFTER_MS, factsOf, type Hold, phaseOfHold } from "../model/decision.ts";
import { isSettledByStatus } from "../model/zone.ts";
import type { GroupFacts, StatusInput } from "./facts.ts";
import type { GroupProgress, StoredHold } from "./status.ts";

/** Bounds of what is stored. */
const MAX_MESSAGE_LENGTH = 1000;
const MAX_OBJECTS = 10;
const MAX_HOLDS = 20;

/** A message as it is stored. */
export const shorten = (message: string): string =>
  message.length > MAX_MESSAGE_LENGTH ? `${message.slice(0, MAX_MESSAGE_LENGTH - 1)}…` : message;

/** The part of a status's sentence that its holds, shown beside it, do not repeat; "" if there is none. */
export function withoutHolds(message: string, holds: readonly Partial<StoredHold>[]): string {
  const said = holds.find((hold) => hold.message !== undefined && message.endsWith(hold.message));
  return said?.message === undefined ? message : message.slice(0, -said.message.length).replace(/: $/, "");
}

/** The rollout's hold first. A cause that was there before keeps its time. */
export function describeHolds(input: StatusInput, progress: GroupProgress | undefined): StoredHold[] {
  const { facts, earlier, now } = input;
  const known = new Map((earlier.holds ?? []).map(({ cause, since }) => [cause, since]));
  const sinceOf = (cause: string): string => known.get(cause) ?? formatTimestamp(now);
  const error = facts.state === "failed" ? [describeError(input, progress, sinceOf)] : [];
  const all = [...(facts.hold ? [facts.hold] : []), ...facts.scalingHolds];
  const holds = all.map((hold): StoredHold => {
    const cause = shorten(dedupKeyOf(hold));
    const since = sinceOf(cause);
    const { kind, name } = hold.culprit ?? findObject(hold) ?? {};
    return {
      reason: hold.reason,
      phase: phaseOf(hold, { input, progress, since }),
      message: shorten(hold.message),
      cause,
      objects: hold.objects.slice(0, MAX_OBJECTS).map((one) => ({ kind: one.kind, name: one.name })),
      ...(kind !== undefined && name !== undefined && { waitsFor: { kind, name } }),
      since,
      ...(hold.until !== undefined && { nextCheck: formatTimestamp(hold.until) }),
    };
  });
  return [...error, ...holds].slice(0, MAX_HOLDS);
}

/** An error is no hold, but the group does not go on either. */
function describeError(
  input: StatusInput,
  progress: GroupProgress | undefined,
  sinceOf: (cause: string) => string,
): StoredHold {
  const cause = "ReconcileFailed";
  const since = sinceOf(cause);
  const isBlocked = input.now - (parseTimestamp(since) ?? input.now) >= ERROR_BLOCKS_AFTER_MS;
  const phase =
    isBlocked || whyOverdue(input, progress) !== undefined ? "Blocked" : ordinary("RollingOut", input.facts);
  return { reason: cause, phase, message: shorten(input.facts.message), cause, objects: [], since };
}

interface Held {
  readonly input: StatusInput;
  readonly progress: GroupProgress | undefined;
  readonly since: string;
}

/** The deadline is that of the rollout: scaling has none. */
function phaseOf(hold: Hold, { input, progress, since }: Held): StoredHold["phase"] {
  const { facts, now } = input;
  const phase = phaseOfHold(hold, { heldMs: now - (parseTimestamp(since) ?? now), now });
  const isOverdue = hold === facts.hold && !factsOf(hold.reason).requested && whyOverdue(input, progress) !== undefined;
  if (isOverdue) return "Blocked";
  return hold === facts.hold ? ordinary(phase, facts) : ordinary(phase, undefined);
}

/** Nothing rolls out where zones are only to be scaled, or where pods of a finished rollout are not ready. */
const ordinary = (phase: StoredHold["phase"], facts: GroupFacts | undefined): StoredHold["phase"] =>
  phase === "RollingOut" && (!facts || isRolledOut(facts)) ? "Waiting" : phase;

/** True if there is nothing to roll out, though not all pods may be ready. */
export const isRolledOut = ({ remaining, zones }: GroupFacts): boolean =>
  remaining.length === 0 && !zones.every(isSettledByStatus);

/** True of the clause that no step was made for longer than the deadline. */
export function whyOverdue({ now, deadlineMs }: StatusInput, progress: GroupProgress | undefined): string | undefined {
  const last = parseTimestamp(progress?.lastStepTime ?? "") ?? now;
  return now - last > deadlineMs ? `no step since ${formatTimestamp(last)}` : undefined;
}

/** A gate or a budget rather than the StatefulSet that waits for it. */
const findObject = ({ objects }: Hold): Hold["objects"][number] | undefined =>
  objects.find(({ kind }) => kind === "RolloutGate" || kind === "ZoneAwarePodDisruptionBudget") ?? objects[0];
