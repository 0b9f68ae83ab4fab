/** Answers to "may it go now?": yes, or the rule that says no, with what blocks and what would help. Pure. */
import { formatTimestamp, parseTimestamp } from "../../infra/timestamp.ts";
import type { Verdict } from "../../reconciler/budget/verdict.ts";
import { isAllowed } from "../../reconciler/budget/verdict.ts";
import type { Block } from "../../reconciler/group-status/status.ts";
import { dedupKeyOf, type Hold } from "../../reconciler/model/decision.ts";
import { isKnown, RULES } from "./rules.ts";

export interface Blocker {
  readonly kind: string;
  readonly name: string;
}

export interface Explanation {
  /** What is asked: `roll out`, `scale`, `evict`. */
  readonly question: string;
  readonly allowed: boolean;
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
}

type Denied = Omit<Explanation, "allowed" | "since" | "until"> & {
  readonly since?: string | undefined;
  readonly until?: string | undefined;
};

/** The answer no. */
export function deny({ question, reason, rule, message, objects, since, until, remedy }: Denied): Explanation {
  return {
    question,
    allowed: false,
    reason,
    rule,
    message,
    objects: objects.map(({ kind, name }) => ({ kind, name })),
    ...(since !== undefined && { since }),
    ...(until !== undefined && { until }),
    remedy,
  };
}

/** No, by a reason of the closed lists. */
function refuse({ namespace, ...said }: Omit<Denied, "rule" | "remedy"> & { readonly namespace: string }): Explanation {
  const { reason, message, objects } = said;
  const facts = isKnown(reason) ? RULES[reason] : undefined;
  return deny({
    ...said,
    rule: facts?.rule ?? "the group can be read and written",
    remedy: facts?.remedy({ namespace, message, objects }) ?? "fix what the message names; the next tick tries again",
  });
}

/** What is recorded of a group. */
export function explainBlock(block: Block, question: string, namespace: string): Explanation {
  const { reason, message, objects, since, nextCheck: until } = block;
  return refuse({ question, namespace, reason, message, objects, since, until });
}

/** What has just been decided; since when, if the same cause is recorded. */
export function explainHold(
  hold: Hold,
  question: string,
  { namespace, recorded }: { namespace: string; recorded: readonly Block[] },
): Explanation {
  const { reason, message, objects, until } = hold;
  const since = recorded.find(({ cause }) => cause === dedupKeyOf(hold))?.since;
  const at = until === undefined ? undefined : formatTimestamp(until);
  return refuse({ question, namespace, reason, message, objects, since, until: at });
}

/** A verdict of a budget. `blockers` are the pods that it counts, `since` when the first of them became unready. */
export function explainVerdict(
  verdict: Verdict,
  question: string,
  { namespace, blockers, since }: { namespace: string; blockers: readonly Blocker[]; since?: string | undefined },
): Explanation {
  const { reason, message } = verdict;
  if (isAllowed(verdict)) return allow(question, `${reason}: ${message}`);
  const objects = [...blockers, ...verdict.objects.filter(({ kind }) => blockers.length === 0 || kind !== "Pod")];
  return refuse({ question, namespace, reason, message, objects, since });
}

export const allow = (question: string, message: string): Explanation => ({
  question,
  allowed: true,
  reason: "",
  rule: "",
  message,
  objects: [],
  remedy: "",
});

/** The earliest of these times; undefined if none is one. */
export function earliestOf(times: readonly (string | undefined)[]): string | undefined {
  const known = times.flatMap((time) => parseTimestamp(time ?? "") ?? []);
  return known.length > 0 ? formatTimestamp(known.reduce((a, b) => Math.min(a, b))) : undefined;
}
