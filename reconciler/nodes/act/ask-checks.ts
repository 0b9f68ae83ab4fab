/**
 * Asks Prometheus for the checks of policies. A policy has no namespace: the Secrets of its checks are in the
 * reconciler's own.
 */
import type { Round } from "../../checks/act/ask-prometheus.ts";
import type { Questions } from "./plan-after-reading.ts";
import type { ExpressionProblems } from "../../checks/expression.ts";
import type { Policy } from "../policy.ts";

export function createAskChecks(round: Round, namespace: string): Questions["askChecks"] {
  return async (due) => {
    const answers = await Promise.all(
      due.map(async (check) => [check.name, await round.ask({ namespace, ...check })] as const),
    );
    return new Map(answers.flatMap(([name, answer]) => (answer ? [[name, answer] as const] : [])));
  };
}

/** Loads the reader of expressions; called only if the spec has changed, as the grammar is large. */
export type LoadReader = () => Promise<(expr: string) => ExpressionProblems>;

/**
 * What is wrong with the expressions of a policy that has changed: sentences that name the field. It holds nothing by
 * itself: whether a query can be evaluated is left to Prometheus.
 */
export async function findInChecks({ checks, generation, status }: Policy, load: LoadReader): Promise<string[]> {
  if (checks.length === 0 || generation === status.observedGeneration) return [];
  const read = await load();
  return checks.flatMap(({ query }, i) => {
    const { error, warnings } = read(query.expr);
    return [...(error === undefined ? [] : [error]), ...warnings].map(
      (problem) => `spec.checks[${i}].query.expr: ${problem}`,
    );
  });
}
