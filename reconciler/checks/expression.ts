/**
 * Reads PromQL by Prometheus' own grammar, for admission. It knows no types of arguments: whether a query can be
 * evaluated is left to Prometheus. The grammar weighs 70 kB: only what judges expressions imports this file, never a
 * tick that merely asks.
 */
import { parser } from "@prometheus-io/lezer-promql";

export interface ExpressionProblems {
  /** Where the expression is no PromQL, as a sentence; undefined if it is. */
  readonly error?: string;
  /** What will hardly be meant, as sentences. */
  readonly warnings: readonly string[];
}

/** Bounds the work on what a user has written; Prometheus itself has no bound. */
const MAX_LENGTH = 10_000;

type Tree = ReturnType<typeof parser.parse>;
type Node = Tree["topNode"];

/**
 * Judges an expression. A function that the grammar does not know is no error: another version of Prometheus, or
 * another server, may have it.
 */
export function readExpression(expr: string): ExpressionProblems {
  if (expr.length > MAX_LENGTH)
    return { error: `the expression is longer than ${MAX_LENGTH} characters`, warnings: [] };
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
