/**
 * matchConditions of webhooks: the part of CEL that decides them without functions or macros other than `has`. Source:
 * https://github.com/google/cel-spec/blob/master/doc/langdef.md
 *
 *   ternary > || > && > == != < <= > >= in > + - > ! > .field ["key"] > literal, name, (...), has(...)
 */
import { isDeepStrictEqual } from "node:util";
import { isFields } from "../objects.ts";

/** `object`, `oldObject` and `request`. */
export type Variables = Readonly<Record<string, unknown>>;
/** Throws where CEL has an error, as for a field that is not there. */
export type Expression = (variables: Variables) => unknown;

const TOKEN = /\s*(?:(\d+)|('[^']*'|"[^"]*")|([A-Za-z_]\w*)|(&&|\|\||[=!<>]=|[-+!<>?:.()[\]]))/y;

/** Throws SyntaxError, also for what is CEL but not known here. */
export function compile(text: string): Expression {
  const tokens = tokenize(text);
  let at = 0;
  const peek = (): string => tokens[at] ?? "";
  const take = (): string => tokens[at++] ?? "";
  const accept = (token: string): boolean => peek() === token && (at++, true);
  const expect = (token: string): void => {
    if (!accept(token)) throw new SyntaxError(`${token} expected instead of ${peek() || "the end"} in ${text}`);
  };

  function ternary(): Expression {
    const condition = binary(0);
    if (!accept("?")) return condition;
    const yes = ternary();
    expect(":");
    const no = ternary();
    return (variables) => (truth(condition(variables)) ? yes(variables) : no(variables));
  }

  function binary(level: number): Expression {
    const operators = LEVELS[level];
    if (!operators) return unary();
    let left = binary(level + 1);
    for (let operate = operators[peek()]; operate; operate = operators[peek()]) {
      take();
      const [first, second, apply] = [left, binary(level + 1), operate];
      left = (variables) =>
        apply(
          () => first(variables),
          () => second(variables),
        );
    }
    return left;
  }

  function unary(): Expression {
    if (!accept("!")) return member();
    const operand = unary();
    return (variables) => !truth(operand(variables));
  }

  function member(): Expression {
    let value = primary();
    for (;;) {
      if (accept(".")) value = select(value, literal(take()));
      else if (accept("[")) {
        value = select(value, ternary());
        expect("]");
      } else return value;
    }
  }

  function primary(): Expression {
    if (accept("(")) {
      const inner = ternary();
      expect(")");
      return inner;
    }
    const token = take();
    if (token === "has") return has();
    if (/^\d/.test(token)) return literal(Number(token));
    if (/^['"]/.test(token)) return literal(token.slice(1, -1));
    if (token === "true" || token === "false") return literal(token === "true");
    if (!/^[A-Za-z_]/.test(token) || peek() === "(")
      throw new SyntaxError(`${token || "the end"} is not known in ${text}`);
    return (variables) => {
      if (!(token in variables)) throw new Error(`no such variable: ${token}`);
      return variables[token];
    };
  }

  /** `has(a.b)`: whether `a` has the field; an error if there is no `a`. */
  function has(): Expression {
    expect("(");
    let owner = primary();
    let field = "";
    while (accept(".")) {
      if (field !== "") owner = select(owner, literal(field));
      field = take();
    }
    expect(")");
    const name = field;
    return (variables) => fieldsIn(owner(variables), name)[name] !== undefined;
  }

  const compiled = ternary();
  if (at < tokens.length) throw new SyntaxError(`${peek()} is one too many in ${text}`);
  return compiled;
}

function tokenize(text: string): string[] {
  const tokens: string[] = [];
  TOKEN.lastIndex = 0;
  for (let at = 0; text.slice(at).trim() !== ""; at = TOKEN.lastIndex) {
    const [, ...groups] = TOKEN.exec(text) ?? [];
    const token = groups.find((group) => group !== undefined);
    if (token === undefined) throw new SyntaxError(`not known: ${text.slice(at)}`);
    tokens.push(token);
  }
  return tokens;
}

type Operate = (left: () => unknown, right: () => unknown) => unknown;

/** From the weakest; one side decides `||` and `&&` even if the other has an error. */
const LEVELS: readonly Readonly<Record<string, Operate>>[] = [
  { "||": (left, right) => either(true, left, right) },
  { "&&": (left, right) => either(false, left, right) },
  {
    "==": (left, right) => isDeepStrictEqual(left(), right()),
    "!=": (left, right) => !isDeepStrictEqual(left(), right()),
    "<": (left, right) => Number(left()) < Number(right()),
    "<=": (left, right) => Number(left()) <= Number(right()),
    ">": (left, right) => Number(left()) > Number(right()),
    ">=": (left, right) => Number(left()) >= Number(right()),
    in: (left, right) => isIn(left(), right()),
  },
  { "+": (left, right) => Number(left()) + Number(right()), "-": (left, right) => Number(left()) - Number(right()) },
];

function either(decisive: boolean, left: () => unknown, right: () => unknown): boolean {
  let first: boolean;
  try {
    first = truth(left());
  } catch (error) {
    if (truth(right()) === decisive) return decisive;
    throw error;
  }
  return first === decisive ? decisive : truth(right());
}

function isIn(value: unknown, container: unknown): boolean {
  return Array.isArray(container) ? container.includes(value) : Object.hasOwn(fieldsIn(container, "in"), String(value));
}

function truth(value: unknown): boolean {
  if (typeof value !== "boolean") throw new Error("no such overload");
  return value;
}

const literal =
  (value: unknown): Expression =>
  () =>
    value;

function fieldsIn(value: unknown, key: string): Readonly<Record<string, unknown>> {
  if (!isFields(value)) throw new Error(`no such key: ${key}`);
  return value;
}

function select(owner: Expression, key: Expression): Expression {
  return (variables) => {
    const name = String(key(variables));
    const value = fieldsIn(owner(variables), name)[name];
    if (value === undefined) throw new Error(`no such key: ${name}`);
    return value;
  };
}
