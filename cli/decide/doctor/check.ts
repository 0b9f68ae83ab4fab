/**
 * The table of `zonewise doctor`. Each row is a check: its name, its level, when it has something to say, what it says,
 * and what fixes that. The rows are in the files beside this one, by their subject, the gravest first:
 *
 *   installation.ts   does anything tick, judge evictions, have its rights and definitions
 *   budgets.ts        do the disruption budgets select what they are to protect
 *   zones.ts          are the StatefulSets of a group what their labels and annotations say
 *   min-times.ts      is the time between downscales of two zones said, and once
 *   rollouts.ts       do gates, PhasedRollouts and policies of node updates reach what they are for
 */
import { hasCode } from "../../../infra/errors.ts";
import { kubectl } from "../../../reconciler/remedies/cures.ts";
import { explainError } from "../explain-error.ts";

/** `error`: it does not work, or does something that nobody wants. `warning`: it may be intended. */
type Level = "error" | "warning";

export interface Finding {
  readonly level: Level;
  /** Name of the check. */
  readonly check: string;
  /** `statefulset/zone-a`. */
  readonly object: string;
  readonly message: string;
  readonly fix: string;
}

/** `Facts`: what was read of the subject. `Case`: what the check has found among them. */
interface Row<Facts, Case> {
  readonly check: string;
  readonly level: Level;
  readonly when: (facts: Facts) => readonly Case[];
  readonly object: (found: Case) => string;
  readonly message: (found: Case) => string;
  readonly fix: (found: Case) => string;
}

export interface Check<Facts> {
  readonly check: string;
  readonly level: Level;
  readonly find: (facts: Facts) => Finding[];
}

/** A row whose cases only it knows. */
export const row = <Facts, Case>({ check, level, when, object, message, fix }: Row<Facts, Case>): Check<Facts> => ({
  check,
  level,
  find: (facts) =>
    when(facts).map((one) => ({ level, check, object: object(one), message: message(one), fix: fix(one) })),
});

/** What the checks of a table find. */
export const runChecks = <Facts>(table: readonly Check<Facts>[], facts: Facts): Finding[] =>
  table.flatMap(({ find }) => find(facts));

/** The finding that something could not be read, and therefore was not examined. */
export function notChecked(subject: string, error: unknown): Finding {
  const { message, hint = "run the command again" } = explainError(error);
  const object = hasCode(error, "Forbidden") ? "you" : "apiserver";
  return { level: "warning", check: "not-checked", object, message: `${message}: not checked: ${subject}`, fix: hint };
}

/** Errors first; in each level in the order in which they were found. Of findings with one and the same fix, the first. */
export function sortFindings(findings: readonly Finding[]): Finding[] {
  const sorted = (["error", "warning"] as const).flatMap((level) => findings.filter((one) => one.level === level));
  const fixes = new Set<string>();
  return sorted.filter(({ fix }) => {
    const command = fix.replace(/^if so: /, "");
    const isNew = !fixes.has(command);
    if (isChange(command)) fixes.add(command);
    return isNew;
  });
}

/** An edit, or a sentence, may be for several troubles. */
const isChange = (fix: string): boolean => /^kubectl .* (label|annotate) /.test(fix);

interface Placed {
  readonly namespace: string;
  readonly name: string;
}

/** The command that gives a StatefulSet labels. */
export const label = (set: Placed, pairs: string): string =>
  kubectl(set, `label --overwrite statefulset ${set.name} ${pairs}`);
/** The command that gives a StatefulSet annotations, or takes them away. */
export const annotate = (set: Placed, pairs: string): string =>
  kubectl(set, `annotate --overwrite statefulset ${set.name} ${pairs}`);
export const edit = (set: Placed, kind = "statefulset"): string => kubectl(set, `edit ${kind} ${set.name}`);
