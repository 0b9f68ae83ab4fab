/** Answers to "may it go now?": yes, or the rule that says no, with what blocks and what would help. Pure. */
import { formatTimestamp, parseTimestamp } from "../../infra/timestamp.ts";
import type { Guard } from "../../reconciler/budget/guard.ts";
import { type Verdict, isAllowed } from "../../reconciler/budget/verdict.ts";
import type { NoTick } from "../../reconciler/report/ticking.ts";
import type { StoredHold } from "../../reconciler/group-status/status.ts";
import { dedupKeyOf, type Hold, type HoldPhase, phaseOfHold } from "../../reconciler/model/decision.ts";
import type { RuleContext } from "../../reconciler/remedies/cures.ts";
import { isKnown, remedyFor, RULES } from "../../reconciler/remedies/rules.ts";

/** The question about a pod that is not ready: does it block its group? */
export const GO_ON = "blocks its group";

export interface Blocker {
  readonly kind: string;
  readonly name: string;
}

export interface Explanation {
  /** The action in question: `roll out`, `scale`, `evict`. */
  readonly question: string;
  readonly allowed: boolean;
  /** The answer in a few words, such as `Nothing to do`; absent for a plain yes or no. */
  readonly answer?: string;
  /** A reason of the closed lists; "" if no rule says no. */
  readonly reason: string;
  readonly rule: string;
  readonly message: string;
  readonly objects: readonly Blocker[];
  /** RFC 3339; absent if nobody has recorded it. */
  readonly since?: string;
  /** When the wait is over by time alone. */
  readonly until?: string;
  readonly remedy: string;
  /** The next tick carries it out; absent if there is nothing to do, or nothing that a tick does. */
  readonly byTick?: true;
}

type Denied = Omit<Explanation, "allowed" | "answer" | "since" | "until"> & {
  /** The phase of a group that this holds. */
  readonly phase?: HoldPhase | undefined;
  readonly since?: string | undefined;
  readonly until?: string | undefined;
};

export function explainDenial({
  question,
  phase,
  reason,
  rule,
  message,
  objects,
  since,
  until,
  remedy,
}: Denied): Explanation {
  return {
    question,
    allowed: false,
    ...(phase !== undefined && { answer: phase }),
    reason,
    rule,
    message,
    objects: objects.map(({ kind, name }) => ({ kind, name })),
    ...(since !== undefined && { since }),
    ...(until !== undefined && { until }),
    remedy,
  };
}

/** The explained group in its present state; without zones for a pod that is in none. */
export type Scene = Pick<RuleContext, "namespace" | "group" | "zones" | "budgets" | "all">;

/** The answer no, with a reason of the closed lists. */
function denyByRule({ scene, ...said }: Omit<Denied, "rule" | "remedy"> & { readonly scene: Scene }): Explanation {
  const { reason, message, objects } = said;
  const facts = isKnown(reason) ? RULES[reason] : undefined;
  return explainDenial({
    ...said,
    rule: facts?.rule ?? "the group can be read and written",
    remedy: remedyFor(reason, { ...scene, message, objects }),
  });
}

/** The answer for a recorded hold of a group. */
export function explainStored(stored: StoredHold, question: string, scene: Scene): Explanation {
  const { phase, reason, message, objects, since, nextCheck: until } = stored;
  return denyByRule({ question, scene, phase, reason, message, objects, since, until });
}

/** The answer for a hold that has just been decided; with its start if the same cause is recorded. */
export function explainHold(
  hold: Hold,
  question: string,
  { scene, recorded, now }: { scene: Scene; recorded: readonly StoredHold[]; now: number },
): Explanation {
  const { reason, message, objects, until } = hold;
  const since = recorded.find(({ cause }) => cause === dedupKeyOf(hold))?.since;
  const at = until === undefined ? undefined : formatTimestamp(until);
  const phase = phaseOfHold(hold, { heldMs: now - (parseTimestamp(since ?? "") ?? now), now });
  return denyByRule({ question, scene, phase, reason, message, objects, since, until: at });
}

/**
 * The answer for a budget's verdict. `blockers` are the pods that it counts, `since` is when the first of them became
 * unready.
 */
export function explainVerdict(
  verdict: Verdict,
  question: string,
  {
    scene,
    blockers,
    since,
    answer,
  }: { scene: Scene; blockers: readonly Blocker[]; since?: string | undefined; answer?: string },
): Explanation {
  const { reason, message } = verdict;
  if (isAllowed(verdict))
    return allow(question, reason === "Allowed" ? `the budget has room (${message})` : message, answer);
  const objects = [...blockers, ...verdict.objects.filter(({ kind }) => blockers.length === 0 || kind !== "Pod")];
  return denyByRule({ question, scene, reason, message, objects, since });
}

export const allow = (question: string, message: string, answer?: string): Explanation => ({
  question,
  allowed: true,
  ...(answer !== undefined && { answer }),
  reason: "",
  rule: "",
  message,
  objects: [],
  remedy: "",
});

/** The answer yes: the next tick does it. */
export const allowByTick = (question: string, message: string): Explanation => ({
  ...allow(question, message, "Goes on by itself"),
  byTick: true,
});

/** It would be executed: neither a yes nor a no of a budget. */
export const NOT_JUDGED = "not judged";

export const STOPPED = "ReconcilerStopped";

/** What does not happen meanwhile. Where Zonewise is not installed, the original may do it. */
export const consequenceOf = ({ reason }: Pick<NoTick, "reason">): string =>
  reason === "NotInstalled"
    ? "Zonewise rolls out, scales and records nothing here"
    : "nothing is rolled out, scaled or recorded until it runs again";

/** Turns an answer that the next tick would carry out into a no if the reconciler does not tick. */
export function denyWithoutTick(answer: Explanation, noTick: NoTick | undefined): Explanation {
  if (!answer.byTick || !noTick) return answer;
  return explainDenial({
    question: answer.question,
    phase: "Blocked",
    reason: STOPPED,
    rule: "the reconciler ticks",
    message: `${noTick.message}; it would: ${answer.message}`,
    objects: [],
    since: noTick.since,
    remedy: noTick.remedy,
  });
}

/**
 * Answers no if no webhook asks the budget about the pod: then the budget's yes does not count, and its no stops
 * nobody.
 */
export function denyUnguarded(answers: readonly Explanation[], guard: Guard, pod: Blocker): Explanation[] {
  const [eviction, ...rest] = answers;
  if (!eviction || guard.reason === "Guarded") return [...answers];
  if (guard.reason === "NotSeen")
    return [{ ...eviction, message: `${eviction.message}; but ${guard.message}` }, ...rest];
  const no = explainDenial({
    question: eviction.question,
    reason: guard.reason,
    rule: "a webhook asks the disruption budget about every eviction",
    message: guard.message,
    objects: [pod],
    remedy: guard.remedy,
  });
  const denied = guard.reason === "NoWebhook" ? { ...no, answer: NOT_JUDGED } : no;
  return [denied, ...(eviction.allowed ? [] : [eviction]), ...rest];
}

/** The earliest of the texts that are times; undefined if there is none. */
export function earliestOf(times: readonly (string | undefined)[]): string | undefined {
  const known = times.flatMap((time) => parseTimestamp(time ?? "") ?? []);
  return known.length > 0 ? formatTimestamp(known.reduce((a, b) => Math.min(a, b))) : undefined;
}
