/** Label selectors as objects carry them. */
import type { LabelSelector } from "./objects.ts";

type Labels = Readonly<Record<string, string>>;
type Test = (value: string | undefined, values: readonly string[]) => boolean;

const OPERATORS: Readonly<Record<string, Test>> = {
  In: (value, values) => value !== undefined && values.includes(value),
  NotIn: (value, values) => value === undefined || !values.includes(value),
  Exists: (value) => value !== undefined,
  DoesNotExist: (value) => value === undefined,
};

/** No selector matches nothing; an empty one everything. */
export function matchesSelector(selector: LabelSelector | undefined, labels: Labels = {}): boolean {
  if (!selector) return false;
  const { matchLabels = {}, matchExpressions = [] } = selector;
  return (
    Object.entries(matchLabels).every(([key, value]) => labels[key] === value) &&
    matchExpressions.every(({ key, operator, values = [] }) => OPERATORS[operator]?.(labels[key], values) ?? false)
  );
}
