/** The problems of a gate's expressions: the same in admission, and once the gate is stored. */
import type { ExpressionProblems } from "../checks/expression.ts";
import { hasPlaceholders, type PlaceholderValues } from "../checks/placeholders.ts";
import type { Gate } from "./gate.ts";
import { findEmptyComparisons, sampleValues } from "./placeholder-values.ts";

/** Sentences, each with the name of its check. */
export interface JudgedExpressions {
  /** No server can ever answer it: its placeholders cannot be filled in, or it compares with no pods (§14.9, §14.10). */
  readonly impossible: readonly string[];
  /** It is no PromQL. It is still asked as it is written, as another server may have a grammar of its own. */
  readonly foreign: readonly string[];
  readonly warnings: readonly string[];
}

/** Reads all expressions of a gate, with sample values for their placeholders. `read` is `readExpression`. */
export function judgeExpressions(
  gate: Gate,
  read: (expr: string, values: PlaceholderValues) => ExpressionProblems,
): JudgedExpressions {
  const values = sampleValues(gate);
  const found = gate.checks.flatMap(({ name, query, baseline }) =>
    [
      { where: `check ${name}`, expr: query.expr },
      ...(baseline ? [{ where: `check ${name}, baseline`, expr: baseline.expr }] : []),
    ].map(({ where, expr }) => ({ where, isFilled: hasPlaceholders(expr), ...read(expr, values) })),
  );
  const errorsOf = (filled: boolean): string[] =>
    found.flatMap(({ where, isFilled, error }) =>
      isFilled === filled && error !== undefined ? [`${where}: ${error}`] : [],
    );
  return {
    impossible: [...errorsOf(true), ...findEmptyComparisons(gate)],
    foreign: errorsOf(false),
    warnings: found.flatMap(({ where, warnings }) => warnings.map((warning) => `${where}: ${warning}`)),
  };
}
