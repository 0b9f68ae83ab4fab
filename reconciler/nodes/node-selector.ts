/**
 * Selectors of nodes, as in a pod's required node affinity and in a volume's:
 * https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/
 */
import type { UpdateNode } from "./node.ts";

export interface NodeRequirement {
  readonly key: string;
  readonly operator: string;
  readonly values?: readonly string[];
}

/** All of its requirements must hold. */
export interface NodeTerm {
  readonly matchExpressions?: readonly NodeRequirement[];
  readonly matchFields?: readonly NodeRequirement[];
}

type SelectedNode = Pick<UpdateNode, "name" | "labels">;

/**
 * True if one of the terms holds. A term without requirements selects nothing, and so does one with an operator that is
 * not known.
 */
export function matchesTerms(terms: readonly NodeTerm[], { name, labels }: SelectedNode): boolean {
  const fields = { "metadata.name": name };
  return terms.some(({ matchExpressions = [], matchFields = [] }) => {
    if (matchExpressions.length + matchFields.length === 0) return false;
    return matchExpressions.every((one) => holds(one, labels)) && matchFields.every((one) => holds(one, fields));
  });
}

type Operator = (value: string | undefined, values: readonly string[]) => boolean;

const OPERATORS: Readonly<Record<string, Operator>> = {
  In: (value, values) => value !== undefined && values.includes(value),
  NotIn: (value, values) => value === undefined || !values.includes(value),
  Exists: (value) => value !== undefined,
  DoesNotExist: (value) => value === undefined,
  Gt: (value, [bound]) => readInteger(value) > readInteger(bound),
  Lt: (value, [bound]) => readInteger(value) < readInteger(bound),
};

const holds = ({ key, operator, values = [] }: NodeRequirement, labels: Readonly<Record<string, string>>): boolean =>
  OPERATORS[operator]?.(labels[key], values) ?? false;

/** NaN, which compares with nothing, if it is no integer. */
const readInteger = (text = ""): number => (/^[+-]?\d+$/.test(text) ? Number(text) : Number.NaN);

/** The requirements of the terms, for a message. */
export function describeTerms(terms: readonly NodeTerm[]): string {
  const texts = terms.map(({ matchExpressions = [], matchFields = [] }) =>
    [...matchExpressions, ...matchFields].map(describeRequirement).join(" and "),
  );
  return texts.join(" or ");
}

function describeRequirement({ key, operator, values = [] }: NodeRequirement): string {
  const [only] = values;
  if (operator === "In" && values.length === 1) return `${key}=${only}`;
  return [key, operator, ...(values.length > 0 ? [`(${values.join(", ")})`] : [])].join(" ");
}
