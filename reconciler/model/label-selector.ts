/** Label selectors of Kubernetes, as StatefulSets, PodDisruptionBudgets and webhook configurations have them. */
import { ownValue } from "../../infra/json.ts";

export type Labels = Readonly<Record<string, string>>;

interface Expression {
  readonly key: string;
  readonly operator: string;
  readonly values?: readonly string[] | undefined;
}

export interface LabelSelector {
  readonly matchLabels?: Labels | undefined;
  readonly matchExpressions?: readonly Expression[] | undefined;
}

interface Operator {
  readonly matches: (value: string | undefined, values: readonly string[]) => boolean;
  /** In the notation of the API's `labelSelector` parameter. */
  readonly text: (key: string, values: string) => string;
  readonly hasValues: boolean;
}

const OPERATORS: Readonly<Record<string, Operator>> = {
  In: {
    matches: (value, values) => value !== undefined && values.includes(value),
    text: (key, values) => `${key} in (${values})`,
    hasValues: true,
  },
  NotIn: {
    matches: (value, values) => value === undefined || !values.includes(value),
    text: (key, values) => `${key} notin (${values})`,
    hasValues: true,
  },
  Exists: { matches: (value) => value !== undefined, text: (key) => key, hasValues: false },
  DoesNotExist: { matches: (value) => value === undefined, text: (key) => `!${key}`, hasValues: false },
};

/** The operator of an expression; undefined for an expression that the API server would refuse. */
function operatorOf({ operator, values = [] }: Expression): Operator | undefined {
  const found = ownValue(OPERATORS, operator);
  return found?.hasValues === values.length > 0 ? found : undefined;
}

/** What is wrong with the selector's expressions; undefined if nothing is. */
export function problemOfExpressions({ matchExpressions = [] }: LabelSelector): string | undefined {
  const bad = matchExpressions.find((expression) => operatorOf(expression) === undefined);
  return bad && `its selector has an invalid expression: ${bad.key} ${bad.operator}`;
}

export const matchesLabels = (matchLabels: Labels, labels: Labels): boolean =>
  Object.entries(matchLabels).every(([key, value]) => ownValue(labels, key) === value);

/**
 * True if the labels match all of the selector. An invalid expression matches, so that a budget with one counts. No
 * selector matches nothing, an empty one everything.
 */
export function matchesSelector(selector: LabelSelector | undefined, labels: Labels): boolean {
  if (!selector) return false;
  const { matchLabels = {}, matchExpressions = [] } = selector;
  return (
    matchesLabels(matchLabels, labels) &&
    matchExpressions.every((expression) => {
      const { key, values = [] } = expression;
      return operatorOf(expression)?.matches(ownValue(labels, key), values) ?? true;
    })
  );
}

/** A selector without invalid expressions in the notation of the API's `labelSelector` parameter. */
export function selectorText({ matchLabels = {}, matchExpressions = [] }: LabelSelector): string {
  const labels = Object.entries(matchLabels).map(([key, value]) => `${key}=${value}`);
  const expressions = matchExpressions.map((expression) => {
    const { key, values = [] } = expression;
    return operatorOf(expression)?.text(key, values.join(",")) ?? "";
  });
  return [...labels, ...expressions].filter((term) => term !== "").join(",");
}
