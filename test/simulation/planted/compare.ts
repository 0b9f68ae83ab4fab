/**
 * The product's text with planted bugs beside it: where a bug changes an expression, both versions are evaluated, and
 * it is noted whether their values differ. The product's own value is used, so that the history stays as it was.
 *
 *     pods.length > limit      with the bug      pods.length >= limit
 *     compare((pods.length > limit), [7], () => (pods.length >= limit))
 *
 * What cannot be evaluated twice, as it waits, writes, or calls what may do so, is noted each time that it runs.
 */
import { stripTypeScriptTypes } from "node:module";
import { type Node, parse } from "acorn";
import { locate, mutate } from "../../mutation/mutation.ts";
import type { Change as Bug } from "../load.ts";

/** Names under which the text calls what notes: the value of the product, bugs, and their values. */
const [COMPARE, NOTE] = ["__compare", "__note"];

/** Begins and ends at these offsets. */
interface Span {
  readonly start: number;
  readonly end: number;
}

interface Step {
  readonly node: Node;
  /** Of the parent, in which the node is. */
  readonly key: string;
}

interface Place extends Span {
  readonly bug: number;
  /** The text with the bug; undefined if what runs is noted, and nothing is evaluated twice. */
  readonly instead?: string;
  /** A statement, before which it is noted that it runs; otherwise an expression. */
  readonly isStatement?: boolean;
  /** A condition: only whether it holds matters. */
  readonly isTest?: boolean;
}

/** No expressions although they look like it, by the type of the parent and the key in it. */
const NO_VALUES: Readonly<Record<string, readonly string[]>> = {
  AssignmentExpression: ["left"],
  AssignmentPattern: ["left"],
  CallExpression: ["callee"],
  CatchClause: ["param"],
  ChainExpression: ["expression"],
  ClassDeclaration: ["id"],
  ExportSpecifier: ["local", "exported"],
  ForOfStatement: ["left"],
  FunctionDeclaration: ["id", "params"],
  ArrowFunctionExpression: ["params"],
  FunctionExpression: ["id", "params"],
  ImportDefaultSpecifier: ["local"],
  ImportNamespaceSpecifier: ["local"],
  ImportSpecifier: ["local", "imported"],
  MethodDefinition: ["key", "value"],
  NewExpression: ["callee"],
  TaggedTemplateExpression: ["tag", "quasi"],
  UnaryExpression: ["argument"],
  UpdateExpression: ["argument"],
  VariableDeclarator: ["id"],
};
const FUNCTIONS = new Set(["ArrowFunctionExpression", "FunctionDeclaration", "FunctionExpression", "MethodDefinition"]);
const EFFECTS = new Set([
  "AssignmentExpression",
  "AwaitExpression",
  "ImportExpression",
  "UpdateExpression",
  "YieldExpression",
]);
/** Calls of these change something, whatever they are called on. */
const CHANGES =
  /^(?:abort|add|clear|delete|emit|error|inc|info|log|next|observe|open|pop|push|reject|reserve|resolve|reverse|send|set|shift|sort|splice|start|unshift|warn|write)$/;
/** In a file that waits for answers only calls of these are made twice. */
const ASKS =
  /^(?:at|concat|endsWith|entries|every|filter|find|findLast|flatMap|from|fromEntries|get|has|includes|isArray|join|keys|map|match|matchAll|max|min|monotonic|now|parse|replace|slice|some|split|startsWith|stringify|test|toISOString|toSorted|values|(?:count|has|is|may|why|wrote)[A-Z]\w*)$/;

interface Change extends Span {
  /** What the bug has there. */
  readonly becomes: string;
}

/** The least that differs, where white space is like any other. */
function leastChange(text: string, { start, end, becomes }: Change): Change {
  const isSpace = (char: string | undefined): boolean => char !== undefined && /\s/.test(char);
  let [from, to] = [0, becomes.length];
  for (;;) {
    if (start < end && from < to && text[start] === becomes[from]) {
      start++;
      from++;
    } else if (start < end && isSpace(text[start]) && isSpace(becomes[from - 1] ?? " ")) start++;
    else break;
  }
  for (;;) {
    if (end > start && to > from && text[end - 1] === becomes[to - 1]) {
      end--;
      to--;
    } else if (end > start && isSpace(text[end - 1]) && isSpace(becomes[to] ?? " ")) end--;
    else if (to > from && isSpace(becomes[to - 1]) && isSpace(text[end] ?? " ")) to--;
    else break;
  }
  return { start, end, becomes: becomes.slice(from, to) };
}

function* childrenOf(node: Node): Generator<Step> {
  for (const [key, value] of Object.entries(node))
    for (const child of Array.isArray(value) ? value : [value])
      if (typeof (child as Node | null)?.type === "string") yield { node: child as Node, key };
}

/** The nodes around a part of the text, the innermost at the end. */
function pathTo(root: Node, { start, end }: Span): readonly Step[] {
  const path: Step[] = [{ node: root, key: "" }];
  for (;;) {
    const around = [...childrenOf(path.at(-1)?.node ?? root)].find(
      ({ node }) => node.start <= start && end <= node.end,
    );
    if (!around) return path;
    path.push(around);
  }
}

const isComputed = (node: Node): boolean => (node as { computed?: boolean }).computed === true;
const isShorthand = (node: Node): boolean => (node as { shorthand?: boolean }).shorthand === true;

/** True if the node stands where its value is all that matters of it. */
function isValue({ node, key }: Step, parent: Node, path: readonly Step[]): boolean {
  if (!/Expression$|^Identifier$|^Literal$|^TemplateLiteral$/.test(node.type) || FUNCTIONS.has(node.type)) return false;
  if (NO_VALUES[parent.type]?.includes(key)) return false;
  if (parent.type.endsWith("Pattern")) return key === "right";
  if (parent.type === "Property") return key === "value" && !isShorthand(parent) && !isInPattern(path);
  if (parent.type === "MemberExpression")
    return key === "property" ? isComputed(parent) : !path.some(({ node: { type } }) => type === "ChainExpression");
  return true;
}

const isInPattern = (path: readonly Step[]): boolean => path.at(-1)?.node.type === "ObjectPattern";

const nameOf = (callee: Node): string => {
  const { name, property } = callee as { name?: string; property?: { name?: string } };
  return name ?? property?.name ?? "";
};

/** True if the expression may be evaluated twice. */
function hasNoEffect(node: Node, waits: boolean): boolean {
  if (EFFECTS.has(node.type) || (node as { operator?: string }).operator === "delete") return false;
  if (node.type === "CallExpression") {
    const name = nameOf((node as unknown as { callee: Node }).callee);
    if (CHANGES.test(name) || (waits && !ASKS.test(name))) return false;
  }
  return [...childrenOf(node)].every((child) => hasNoEffect(child.node, waits));
}

function parseExpression(text: string): Node | undefined {
  try {
    const { body } = parse(`(${text}\n)`, { ecmaVersion: "latest", sourceType: "module" });
    return body.length === 1 && body[0]?.type === "ExpressionStatement" ? body[0].expression : undefined;
  } catch {
    return undefined;
  }
}

const isBlank = (text: string): boolean => text.trim() === "";

interface File {
  /** In JavaScript. */
  readonly text: string;
  readonly root: Node;
  /** For answers of others. */
  readonly waits: boolean;
}

/**
 * Where the bug may show: the largest expression that may be evaluated twice, as a larger one differs less often, or
 * what runs. Undefined if the bug changes what is evaluated as the file is loaded.
 */
function placeOf({ text, root, waits }: File, bug: number, change: Change): Place | undefined {
  const span = leastChange(text, change);
  const isGone = isBlank(span.becomes);
  const path = pathTo(root, span);
  let place: Place | undefined;
  for (let i = path.length - 1; i > 0; i--) {
    const step = path[i] as Step;
    const { node } = step;
    const parent = (path[i - 1] as Step).node;
    if (!path.slice(0, i + 1).some((around) => FUNCTIONS.has(around.node.type))) return place;
    if (FUNCTIONS.has(node.type)) {
      // What the function that calls it makes of its values matters, and nothing else.
      if (step.key === "arguments" && !waits && (!place || place.instead !== undefined)) continue;
      return place;
    }
    const { start, end } = node;
    if (isValue(step, parent, path.slice(0, i - 1))) {
      const instead = text.slice(start, span.start) + span.becomes + text.slice(span.end, end);
      const parsed = parseExpression(instead);
      if (parsed && hasNoEffect(node, waits) && hasNoEffect(parsed, waits))
        place = { start, end, bug, instead, isTest: step.key === "test" };
      else if (place?.instead !== undefined) return place;
      else place ??= { start, end, bug };
    }
    if (place) continue;
    if (node.type === "BlockStatement") {
      const { body } = node as unknown as { body: readonly Node[] };
      return statementOf(body, span, bug, isGone);
    }
    if (parent.type === "BlockStatement" || (step.key === "consequent" && parent.type === "SwitchCase"))
      return statementOf([node], span, bug, isGone);
  }
  return place;
}

/** Of statements that a bug removes or changes: if it removes one that depends on a condition, where that holds. */
function statementOf(body: readonly Node[], span: Span, bug: number, isGone: boolean): Place | undefined {
  const touched = body.filter(({ start, end }) => start < span.end && span.start < end);
  const [first] = touched;
  const { test, alternate } = (first ?? {}) as { test?: Node; alternate?: Node | null };
  const isWhole = first && span.start <= first.start && first.end <= span.end;
  if (isGone && isWhole && touched.length === 1 && first.type === "IfStatement" && test && !alternate)
    return { start: test.start, end: test.end, bug, instead: "false", isTest: true };
  return first && { start: first.start, end: first.end, bug, isStatement: true };
}

export interface Compared {
  readonly text: string;
  /** The bugs that change what is evaluated as the file is loaded: where they show is not known. */
  readonly unknown: readonly number[];
}

/** The text of a file in JavaScript, with what notes where its bugs, which have these numbers, would differ. */
export function compareBugs(source: string, bugs: readonly (readonly [number: number, bug: Bug])[]): Compared {
  const text = stripTypeScriptTypes(source);
  const root = parse(text, { ecmaVersion: "latest", sourceType: "module" });
  const file = { text, root, waits: /\bawait\b|\basync\b/.test(text) };
  const unknown: number[] = [];
  const places: Place[] = [];
  for (const [number, bug] of bugs) {
    const found = locate(source, bug);
    const changed = mutate(source, bug);
    if (!found || changed === undefined) throw new Error(`not once in ${bug.file}: ${bug.find}`);
    const start = found.index;
    const becomes = stripTypeScriptTypes(changed).slice(start, start + bug.replacement.length);
    const place = placeOf(file, number, { start, end: start + found[0].length, becomes });
    if (place) places.push(place);
    else unknown.push(number);
  }
  return { text: render(text, { start: 0, end: text.length }, places), unknown };
}

function render(text: string, { start, end }: Span, places: readonly Place[]): string {
  let rendered = "";
  let at = start;
  const sizeOf = (span: Span): number => span.end - span.start;
  for (;;) {
    const rest = places.filter((place) => place.start >= at && place.end <= end);
    const next = rest.toSorted((a, b) => a.start - b.start || sizeOf(b) - sizeOf(a))[0];
    if (!next) return rendered + text.slice(at, end);
    const here = rest.filter((place) => place.start === next.start && place.end === next.end);
    const inner = render(
      text,
      next,
      rest.filter((place) => !here.includes(place)),
    );
    const compared = here.filter(({ instead }) => instead !== undefined);
    const noted = here.filter((place) => place.instead === undefined).map(({ bug }) => `${NOTE}(${bug})`);
    const asks = here.some(({ isTest }) => isTest) ? "!!" : "";
    const others = compared.map(({ instead }) => `() => ${asks}(${instead}\n)`).join();
    const value =
      compared.length === 0
        ? inner
        : `${COMPARE}(${asks}(${inner}), [${compared.map(({ bug }) => bug).join()}], ${others})`;
    const isStatement = here.some((place) => place.isStatement);
    rendered += text.slice(at, next.start);
    if (noted.length === 0) rendered += value;
    else rendered += isStatement ? `${noted.join(";")};${value}` : `(${noted.join()}, ${value})`;
    at = next.end;
  }
}
