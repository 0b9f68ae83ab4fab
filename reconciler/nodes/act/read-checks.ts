/**
 * What is wrong with the expressions of a policy that has changed. It holds nothing by itself: whether a query can be
 * evaluated is left to Prometheus.
 */
import type { ExpressionProblems } from "../../checks/expression.ts";
import type { Policy } from "../policy.ts";

/** Loads the reader of expressions; called only if the spec has changed, as the grammar is large. */
export type LoadReader = () => Promise<(expr: string) => ExpressionProblems>;

/** Sentences that name the field; none for a policy whose spec was read before. */
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
