/**
 * Placeholders in the expression of a check, such as `$(group)` in `up{job="$(group)"}`: their values, and how a value
 * is written at its place. No value can end the string that it stands in: only names of objects are filled in, and
 * expression.ts reads the result by the grammar before it is asked.
 */

/** The value of a placeholder. */
export type PlaceholderValue =
  /** The name of an object, or the value of a label. */
  | { readonly kind: "name"; readonly name: string }
  | { readonly kind: "pods"; readonly sets: readonly PodsOf[] }
  | { readonly kind: "duration"; readonly seconds: number };

/** Pods of a StatefulSet: all that it may have, or those of these ordinals. */
export interface PodsOf {
  readonly set: string;
  readonly ordinals?: readonly number[];
}

/** By the name between the parentheses. */
export type PlaceholderValues = Readonly<Record<string, PlaceholderValue>>;

/** Matches everything that looks like a placeholder: a mistyped one must not be sent to Prometheus. */
export const PLACEHOLDER = /\$\(([^()]*)\)/g;

interface Compared {
  readonly query: { readonly expr: string };
  readonly baseline?: { readonly expr: string } | null | undefined;
}

/** True if a check compares the pods of the placeholder: without pods, one of the two numbers would be missing. */
export const compares = ({ query, baseline }: Compared, placeholder: "candidate_pods" | "other_pods"): boolean =>
  Boolean(baseline) && [query, baseline].some((one) => one?.expr.includes(`$(${placeholder})`));

export const hasPlaceholders = (expr: string): boolean => expr.includes("$(");

const NAME = /^[A-Za-z0-9](?:[-_.A-Za-z0-9]{0,251}[A-Za-z0-9])?$/;

/** A label's value, or a name that is part of one; undefined if it is not valid in Kubernetes. */
export function writeName(name: string, isRegex: boolean): string | undefined {
  if (!NAME.test(name)) return undefined;
  return isRegex ? name.replaceAll(".", "[.]") : name;
}

/** No pod has this name: without pods nothing is matched, also not series without the label. */
const NO_POD = "(?:-)";

/** A regular expression that matches the names of these pods. */
export function writePods(sets: readonly PodsOf[]): string | undefined {
  const parts = sets
    .filter(({ ordinals }) => ordinals?.length !== 0)
    .map(({ set, ordinals }) => {
      const name = writeName(set, true);
      return name && `${name}-${ordinals ? `(?:${ordinals.join("|")})` : "[0-9]+"}`;
    });
  if (parts.includes(undefined)) return undefined;
  return parts.length === 0 ? NO_POD : `(?:${parts.join("|")})`;
}

const [MIN_S, MAX_S] = [60, 3600];

/** The time since a moment, from a minute to an hour: a range that Prometheus can read. Milliseconds. */
export const rangeSince = (at: number, now: number): PlaceholderValue => ({
  kind: "duration",
  seconds: Math.min(Math.max(Math.round((now - at) / 1000), MIN_S), MAX_S),
});
