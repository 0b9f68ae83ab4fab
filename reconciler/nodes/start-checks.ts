/**
 * Checks of Prometheus that must have passed before a node starts. They are asked while a node could start, and never
 * hold one that is active.
 *
 *   a node could start, or an attempt has ended --initial delay--> answers --each check has passed, and not long ago--> nodes start
 *
 * The results are in the policy's status: a process may die at any time. A policy that has changed asks again.
 */
import { formatTimestamp, parseTimestamp } from "../../infra/timestamp.ts";
import {
  formatResult,
  isPassing,
  type NamedCheck,
  type NamedResult,
  nextResults,
  type PlannedCheck,
  planChecks,
  readResults,
  streakOf,
} from "../checks/result.ts";
import type { Policy, PolicyStatus } from "./policy.ts";
import type { PolicySnapshot, Why } from "./snapshot.ts";

/** The checks since a node could first start, or the last one left its slot. */
export interface StartChecks {
  /** Initial delays begin then, milliseconds since the epoch. */
  readonly since: number;
  readonly results: readonly NamedResult[];
}

/**
 * The results that count now, with the answers that have come; none if an attempt has just ended (`ended`), or if the
 * policy has changed. Undefined without checks.
 */
export function updateChecks(
  { now, policy, answers = new Map() }: Pick<PolicySnapshot, "now" | "policy" | "answers">,
  ended: boolean,
): StartChecks | undefined {
  const { checks } = policy;
  if (checks.length === 0) return undefined;
  const { since, results } = keepResults(policy, now, ended);
  return { since, results: nextResults(checks, results, { answers }) };
}

function keepResults(
  { generation, status }: Pick<Policy, "generation" | "status">,
  now: number,
  ended: boolean,
): StartChecks {
  const since = parseTimestamp(status.checks?.since ?? "");
  const isKept = since !== undefined && since <= now && generation === status.observedGeneration;
  if (ended || !isKept || !status.checks) return { since: now, results: [] };
  const results = readResults(status.checks.results, since);
  // Stricter than a gate: a node that starts reboots, and a check asked once more costs little.
  return { since, results: results.filter(({ streak: { lastAt = now } }) => lastAt <= now) };
}

/** The checks to ask now. */
export function dueChecks({ checks }: Pick<Policy, "checks">, current: StartChecks, now: number): PlannedCheck[] {
  return planChecks(checks, current.results, current.since).filter((check) => check.dueAt <= now);
}

/** As the status stores them. */
export function formatChecks(checks: StartChecks | undefined): PolicyStatus["checks"] {
  return checks && { since: formatTimestamp(checks.since), results: checks.results.map(formatResult) };
}

/**
 * Why no node starts: the first check that fails, otherwise the first without an answer, otherwise the first that has
 * not passed yet.
 */
export function whyChecksHold(
  { checks }: Pick<Policy, "checks">,
  { results }: StartChecks,
  now: number,
): Why | undefined {
  const held = checks.filter((check) => !isPassing(check, streakOf(check, results), now));
  const skips = held.map((check) => describe(check, results));
  return ["CheckFailing", "CheckUnreachable", "CheckPending"]
    .map((wanted) => skips.find(({ reason }) => reason === wanted))
    .find(Boolean);
}

function describe(check: NamedCheck, results: readonly NamedResult[]): Why {
  const { name, successThreshold } = check;
  const { lastVerdict, sample = "no data", message } = results.find((result) => result.name === name) ?? {};
  if (lastVerdict === "Failure") return { reason: "CheckFailing", message: `check "${name}" fails: ${sample}` };
  // Versions that stored no message had errors for partial data only.
  if (lastVerdict === "Error")
    return { reason: "CheckUnreachable", message: `check "${name}" has no answer: ${message ?? "partial data"}` };
  const { successes } = streakOf(check, results);
  return {
    reason: "CheckPending",
    message: `check "${name}": ${successes} of ${successThreshold} consecutive passes`,
  };
}
