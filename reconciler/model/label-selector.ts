/** Label selectors of Kubernetes: of its own budgets, and of webhooks. */
import { ownValue } from "../../infra/json.ts";

export type Labels = Readonly<Record<string, string>>;

export interface LabelSelector {
  readonly matchLabels?: Labels;
  readonly matchExpressions?: readonly {
    readonly key: string;
    readonly operator: string;
    readonly values?: readonly string[];
  }[];
}

const OPERATORS: Readonly<Record<string, (value: string | undefined, values: readonly string[]) => boolean>> = {
  In: (value, values) => value !== undefined && values.includes(value),
  NotIn: (value, values) => value === undefined || !values.includes(value),
  Exists: (value) => value !== undefined,
  DoesNotExist: (value) => value === undefined,
};

/**
 * True if the labels match all of the selector; an unknown operator matches, so that the budget counts. No selector
 * matches nothing.
 */
export function matchesSelector(selector: LabelSelector | undefined, labels: Labels): boolean {
  if (!selector) return false;
  const { matchLabels = {}, matchExpressions = [] } = selector;
  return (
    Object.entries(matchLabels).every(([key, value]) => labels[key] === value) &&
    matchExpressions.every(
      ({ key, operator, values = [] }) => OPERATORS[operator]?.(ownValue(labels, key), values) ?? true,
    )
  );
}
