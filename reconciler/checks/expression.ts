/**
 * Reads PromQL by Prometheus' own grammar, for admission. It knows no types of arguments: whether a query can be evaluated is left to Prometheus.
 * The grammar weighs 70 kB: only what judges expressions imports this file, never a tick that merely asks.
 */
import { parser } from "@prometheus-io/lezer-promql";

export interface ExpressionProblems {
  /** Where the expression is no PromQL, as a sentence; undefined if it is. */
  readonly error?: string;
  /** What will hardly be meant, as sentences. */
  readonly warnings: readonly string[];
}

/** Bounds the work on what a user has written; Prometheus itself has no bound. */
const LONGEST = 10_000;

type Tree = ReturnType<typeof parser.parse>;
type Node = Tree["topNode"];

/** Judges an expression. */
export function readExpression(expr: string): ExpressionProblems {
  if (expr.length > LONGEST) return { error: `the expression is longer than ${LONGEST} characters`, warnings: [] };
  const tree = parser.parse(expr);
  const at = firstError(tree);
  if (at !== undefined)
    return { error: `the expression is not valid PromQL at character ${at + 1}${describePlace(expr, at)}`, warnings: [] };
  const top = unwrap(tree.topNode.firstChild);
  return { warnings: [warnOfType(top), warnOfBool(top)].filter((warning) => warning !== undefined) };
}

function firstError(tree: Tree): number | undefined {
  let first: number | undefined;
  tree.iterate({
    enter: ({ type, from }) => {
      if (type.isError) first = Math.min(from, first ?? from);
    },
  });
  return first;
}

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
  if (node.name === "StringLiteral") return "the expression gives a string, not an instant vector: every answer will be an error";
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
