/**
 * Placeholders in the expression of a check, such as `$(group)` in `up{job="$(group)"}`: their values, and how a value
 * is written at its place. Zonewise knows of PromQL only where a string or a comment begins and ends, and which strings
 * are regular expressions; whether the rest is PromQL, Prometheus says.
 *
 *   a name      in any quotes: letters, digits, "-", "_" and ".", which end no string; a dot is [.] after =~ and !~
 *   pods        in the quotes after =~ and !~
 *   a duration  outside of quotes, as a word of its own
 */
import { readQueryTarget } from "../../infra/prometheus/target.ts";

/** The value of a placeholder. */
type PlaceholderValue =
  /** The name of an object, or the value of a label. */
  | { readonly kind: "name"; readonly name: string }
  | { readonly kind: "pods"; readonly sets: readonly PodsOf[] }
  | { readonly kind: "duration"; readonly seconds: number };

/** Pods of a StatefulSet: all that it may have, or the pods with these ordinals. */
interface PodsOf {
  readonly set: string;
  readonly ordinals?: readonly number[];
}

/** By the name between the parentheses. */
export type PlaceholderValues = Readonly<Record<string, PlaceholderValue>>;

/** In characters. Bounds what is read here, and what is sent to a Prometheus. */
const MAX_LENGTH = 4096;
/** Once its placeholders are filled in: a name has at most 253 characters, but there may be many pods. */
const MAX_FILLED = 100_000;

/** Matches everything that looks like a placeholder: a mistyped one must not be sent to Prometheus. */
const PLACEHOLDER = /\$\(([^()]*)\)/g;

interface Compared {
  readonly query: { readonly expr: string };
  readonly baseline?: { readonly expr: string } | null | undefined;
}

interface Asked extends Compared {
  readonly query: { readonly expr: string; readonly url: string };
}

/** True if a check compares the pods of the placeholder: without pods, one of the two numbers would be missing. */
export const compares = ({ query, baseline }: Compared, placeholder: "candidate_pods" | "other_pods"): boolean =>
  Boolean(baseline) && [query, baseline].some((one) => one?.expr.includes(`$(${placeholder})`));

/** What no server can ever answer of a check, each with its field: a URL, or placeholders that cannot be filled in. */
export function findFaults(check: Asked, values: PlaceholderValues): string[] {
  const { problem } = readQueryTarget(check.query.url);
  const expressions = {
    "query.expr": check.query.expr,
    ...(check.baseline && { "baseline.expr": check.baseline.expr }),
  };
  return [
    ...(problem === undefined ? [] : [`query.url ${problem}`]),
    ...Object.entries(expressions).flatMap(([field, expr]) => {
      const { problem: unfilled } = fillPlaceholders(expr, values);
      return unfilled === undefined ? [] : [`${field}: ${unfilled}`];
    }),
  ];
}

/** An expression without placeholders, or why it cannot be asked, as a sentence. */
type Filled =
  | { readonly expr: string; readonly problem?: undefined }
  | { readonly expr?: undefined; readonly problem: string };

/** The expression with these values. The work grows with its length alone. */
export function fillPlaceholders(written: string, values: PlaceholderValues = {}): Filled {
  if (written.length > MAX_LENGTH) return { problem: `the expression is longer than ${MAX_LENGTH} characters` };
  for (const [text, name = ""] of written.matchAll(PLACEHOLDER))
    if (!Object.hasOwn(values, name)) return { problem: `${text} is not a placeholder here: ${listNames(values)}` };
  let expr = "";
  for (const part of partsOf(written)) {
    const filled = fillPart(part, values);
    if (filled.problem !== undefined) return filled;
    expr += filled.expr;
    if (expr.length > MAX_FILLED)
      return { problem: `the expression is longer than ${MAX_FILLED} characters once its placeholders are filled in` };
  }
  return { expr };
}

function listNames(values: PlaceholderValues): string {
  const names = Object.keys(values).map((name) => `$(${name})`);
  return names.length === 0 ? "there is none" : `those are ${names.join(", ")}`;
}

interface Part {
  readonly text: string;
  readonly place: "regex" | "string" | "comment" | "code";
}

/** A string with the operator before it, or a comment. A string without an end extends to the end of the text. */
const STRING_OR_COMMENT = /(?<operator>[=!]~\s*)?(?:"(?:\\[^]|[^"\\])*"?|'(?:\\[^]|[^'\\])*'?|`[^`]*`?)|#[^\r\n]*/g;

function* partsOf(written: string): Generator<Part> {
  let from = 0;
  for (const { 0: text, index, groups } of written.matchAll(STRING_OR_COMMENT)) {
    yield { text: written.slice(from, index), place: "code" };
    const place = text.startsWith("#") ? "comment" : groups?.["operator"] === undefined ? "string" : "regex";
    yield { text, place };
    from = index + text.length;
  }
  yield { text: written.slice(from), place: "code" };
}

function fillPart({ text, place }: Part, values: PlaceholderValues): Filled {
  let expr = "";
  let from = 0;
  for (const { 0: found, 1: name = "", index } of text.matchAll(PLACEHOLDER)) {
    const end = index + found.length;
    const isWord = !/[\w.]/.test(text.charAt(index - 1) + text.charAt(end));
    const value = values[name];
    const filled: Filled = value ? writeValue(value, place, isWord) : { problem: "has no value" };
    if (filled.problem !== undefined) return { problem: `${found} ${filled.problem}` };
    expr += text.slice(from, index) + filled.expr;
    if (expr.length > MAX_FILLED) break;
    from = end;
  }
  return { expr: expr + text.slice(from) };
}

/** The value at its place, or the problem as the end of a sentence. */
function writeValue(value: PlaceholderValue, place: Part["place"], isWord: boolean): Filled {
  if (value.kind === "duration")
    return place === "code" && isWord
      ? { expr: `${value.seconds}s` }
      : { problem: "must stand where a duration does, as in [$(range)]" };
  if (value.kind === "pods" && place !== "regex") return { problem: "must stand in the quotes after =~ or !~" };
  if (place !== "string" && place !== "regex") return { problem: "must stand in quotes" };
  const expr = value.kind === "pods" ? writePods(value.sets) : writeName(value.name, place === "regex");
  return expr === undefined ? { problem: "does not stand for a valid object name" } : { expr };
}

const NAME = /^[A-Za-z0-9](?:[-_.A-Za-z0-9]{0,251}[A-Za-z0-9])?$/;

/** A label's value, or a name that is part of one; undefined if it is not valid in Kubernetes. */
function writeName(name: string, isRegex: boolean): string | undefined {
  if (!NAME.test(name)) return undefined;
  return isRegex ? name.replaceAll(".", "[.]") : name;
}

/** No pod has this name: without pods nothing is matched, also not series without the label. */
const NO_POD = "(?:-)";

/** A regular expression that matches the names of these pods. */
function writePods(sets: readonly PodsOf[]): string | undefined {
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
