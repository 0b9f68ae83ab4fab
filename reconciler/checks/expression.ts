/**
 * Reads PromQL by Prometheus' own grammar: for admission, and to fill in placeholders. It knows no types of arguments:
 * whether a query can be evaluated is left to Prometheus. The grammar weighs 70 kB: only code that judges or fills in
 * expressions imports this file, never a tick that merely asks.
 */
import { parser } from "@prometheus-io/lezer-promql";
import {
  hasPlaceholders,
  PLACEHOLDER,
  type PlaceholderValue,
  type PlaceholderValues,
  writeName,
  writePods,
} from "./placeholders.ts";

export interface ExpressionProblems {
  /** The place where the expression is not PromQL, as a sentence; undefined if it is valid. */
  readonly error?: string;
  /** Likely mistakes, as sentences. */
  readonly warnings: readonly string[];
}

/** Bounds the work on what a user has written; Prometheus itself has no bound. */
const MAX_LENGTH = 10_000;

type Tree = ReturnType<typeof parser.parse>;
type Node = Tree["topNode"];

/**
 * Judges an expression, with these values for its placeholders. A function that the grammar does not know is no error:
 * another version of Prometheus, or another server, may have it.
 */
export function readExpression(written: string, values: PlaceholderValues = {}): ExpressionProblems {
  if (written.length > MAX_LENGTH)
    return { error: `the expression is longer than ${MAX_LENGTH} characters`, warnings: [] };
  const { expr, problem } = fillPlaceholders(written, values);
  return problem === undefined ? judgeExpression(expr) : { error: problem, warnings: [] };
}

function judgeExpression(expr: string): ExpressionProblems {
  const { known, unknown } = replaceUnknown(expr);
  const tree = parser.parse(known);
  const at = firstError(tree)?.from;
  if (at !== undefined)
    return {
      error: `the expression is not valid PromQL at character ${at + 1}${describePlace(expr, at)}`,
      warnings: [],
    };
  const top = unwrap(tree.topNode.firstChild);
  return {
    warnings: [...unknown.map(warnOfFunction), warnOfType(top), warnOfBool(top)].filter(
      (warning) => warning !== undefined,
    ),
  };
}

/** An expression without placeholders, or why they cannot be filled in. */
export type Filled =
  | { readonly expr: string; readonly problem?: undefined }
  | { readonly expr?: undefined; readonly problem: string };

interface Place {
  /** As it is written: `$(group)`. */
  readonly text: string;
  readonly value: PlaceholderValue;
}

/** The expression with these values. Each must stand where the grammar has a place for it. */
export function fillPlaceholders(written: string, values: PlaceholderValues): Filled {
  if (!hasPlaceholders(written)) return { expr: written };
  const found = [...written.matchAll(PLACEHOLDER)].map(([text, name = ""]) => ({ text, value: valueOf(values, name) }));
  const places = found.filter((place): place is Place => place.value !== undefined);
  const unknown = found.find(({ value }) => value === undefined);
  if (unknown) return { problem: `${unknown.text} is no placeholder here: ${listNames(values)}` };
  const filled = fillPlaces(written, places);
  const wrong = filled.find((place) => place.problem !== undefined);
  if (wrong?.problem !== undefined) return { problem: wrong.problem };
  const { text: expr } = splice(
    written,
    filled.map(({ text = "" }) => text),
  );
  const { error } = expr.length > MAX_FILLED ? { error: "the expression is too long" } : judgeExpression(expr);
  return error === undefined ? { expr } : { problem: `${error}, once its placeholders are filled in` };
}

/** The place of each placeholder is parsed with sample values that fit everywhere. */
function fillPlaces(written: string, places: readonly Place[]): FilledPlace[] {
  const probe = splice(
    written,
    places.map(({ value }) => SAMPLES[value.kind]),
  );
  const tree = parser.parse(replaceUnknown(probe.text).known);
  return places.map(({ text, value }, i): FilledPlace => {
    const { from, to } = probe.spans[i] ?? { from: 0, to: 0 };
    const filled = fillPlace(value, tree.resolveInner(from, 1), { from, to });
    return filled.problem === undefined ? filled : { problem: `${text} ${filled.problem}` };
  });
}

/** Bounds the names of pods: those of a StatefulSet have a pattern, and those of single ordinals are few. */
const MAX_FILLED = 100_000;
const SAMPLES = { name: "x", pods: "x", duration: "5m" } as const;

const valueOf = (values: PlaceholderValues, name: string): PlaceholderValue | undefined =>
  Object.hasOwn(values, name) ? values[name] : undefined;

function listNames(values: PlaceholderValues): string {
  const names = Object.keys(values).map((name) => `$(${name})`);
  return names.length === 0 ? "there is none" : `those are ${names.join(", ")}`;
}

interface Span {
  readonly from: number;
  readonly to: number;
}

/** The text with these in place of its placeholders, in their order, and where they are. */
function splice(written: string, texts: readonly string[]): { text: string; spans: readonly Span[] } {
  const spans: Span[] = [];
  let grown = 0;
  const text = written.replaceAll(PLACEHOLDER, (whole: string, _name: string, at: number) => {
    const value = texts[spans.length] ?? "";
    spans.push({ from: at + grown, to: at + grown + value.length });
    grown += value.length - whole.length;
    return value;
  });
  return { text, spans };
}

type FilledPlace =
  | { readonly text: string; readonly problem?: undefined }
  | { readonly text?: undefined; readonly problem: string };

function fillPlace(value: PlaceholderValue, node: Node, span: Span): FilledPlace {
  if (value.kind === "duration") return fillDuration(value.seconds, node, span);
  const matcher = node.name === "StringLiteral" && node.parent?.name.endsWith("LabelMatcher") ? node.parent : null;
  if (!matcher) return { problem: "must stand in the quoted value of a label matcher" };
  return fillMatcher(value, matcher.getChild("MatchOp")?.firstChild?.name.endsWith("Regex") === true);
}

/** It must be the whole duration: `5$(range)` is none. */
function fillDuration(seconds: number, { name, from, to }: Node, span: Span): FilledPlace {
  return name.startsWith("NumberDurationLiteral") && from === span.from && to === span.to
    ? { text: `${seconds}s` }
    : { problem: "must stand where a duration does, as in [$(range)]" };
}

function fillMatcher(value: Exclude<PlaceholderValue, { kind: "duration" }>, isRegex: boolean): FilledPlace {
  if (value.kind === "pods" && !isRegex) return { problem: "must stand in a label matcher with =~ or !~" };
  const text = value.kind === "pods" ? writePods(value.sets) : writeName(value.name, isRegex);
  return text === undefined ? { problem: "stands for what is no name of an object: it is not filled in" } : { text };
}

/** Each costs a parse. */
const MAX_UNKNOWN = 8;

/** The expression with a known function in place of each unknown one, at the same places. */
function replaceUnknown(expr: string): { readonly known: string; readonly unknown: readonly string[] } {
  const unknown: string[] = [];
  let known = expr;
  while (unknown.length < MAX_UNKNOWN) {
    const error = firstError(parser.parse(known));
    const name = error?.prevSibling;
    if (!error || name?.name !== "Identifier" || known[error.from] !== "(" || name.to - name.from < KNOWN.length) break;
    unknown.push(known.slice(name.from, name.to));
    known = known.slice(0, name.from) + KNOWN.padEnd(name.to - name.from) + known.slice(name.to);
  }
  return { known, unknown };
}

const KNOWN = "ln";

function firstError(tree: Tree): Node | undefined {
  let first: Node | undefined;
  tree.iterate({
    enter: ({ type, from, node }) => {
      if (type.isError && from < (first?.from ?? Infinity)) first = node;
    },
  });
  return first;
}

const warnOfFunction = (name: string): string =>
  `${name} is no function that is known here: if Prometheus does not know it either, every answer will be an error`;

function describePlace(expr: string, at: number): string {
  const rest = expr.slice(at, at + 20).trim();
  return rest === "" ? ", at its end" : `, near ${JSON.stringify(rest)}`;
}

/** The expression within parentheses and signs; comments are no expression. */
function unwrap(node: Node | null): Node | null {
  let inner = node;
  while (inner && ["ParenExpr", "UnaryExpr", "LineComment"].includes(inner.name))
    inner = inner.name === "LineComment" ? inner.nextSibling : operandOf(inner);
  return inner;
}

function operandOf(node: Node): Node | null {
  return node.name === "UnaryExpr" ? node.lastChild : node.firstChild;
}

function warnOfType(node: Node | null): string | undefined {
  if (node === null) return undefined;
  if (node.name === "StringLiteral")
    return "the expression gives a string, not an instant vector: every answer will be an error";
  if (isScalar(node)) return "the expression gives a scalar, not an instant vector: every answer will be an error";
  if (node.name === "MatrixSelector" || node.name === "SubqueryExpr")
    return "the expression gives a range vector, not an instant vector: every answer will be an error";
  return undefined;
}

const SCALAR_FUNCTIONS: ReadonlySet<string> = new Set(["Scalar", "Time", "Pi"]);

function isScalar(node: Node | null): boolean {
  const inner = unwrap(node);
  if (inner === null) return false;
  if (inner.name === "FunctionCall") return SCALAR_FUNCTIONS.has(inner.firstChild?.firstChild?.name ?? "");
  if (inner.name === "BinaryExpr") return isScalar(inner.firstChild) && isScalar(inner.lastChild);
  return inner.name === "NumberDurationLiteral";
}

/** A comparison with `bool` gives 0 or 1 for every series instead of leaving series out. */
function warnOfBool(node: Node | null): string | undefined {
  if (node?.name !== "BinaryExpr" || node.getChild("BoolModifier") === null) return undefined;
  return "the comparison with bool gives data whether it holds or not: without bool it gives data only where it holds";
}
