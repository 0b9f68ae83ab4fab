import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { parse } from "acorn";
import { MUTATIONS } from "../../mutation/table.ts";
import type { Change as Bug } from "../load.ts";
import { compareBugs } from "./compare.ts";

const bug = (find: string, replacement: string): Bug => ({ file: "a.ts", find, replacement });
const compare = (source: string, ...bugs: Bug[]) => compareBugs(source, [...bugs.entries()]);
/** On one line, as what a bug has begins a new one at its end. */
const textOf = (source: string, ...bugs: Bug[]): string => compare(source, ...bugs).text.replaceAll(/\s+/g, " ");

describe("a planted bug is compared", () => {
  for (const [name, source, planted, expected] of [
    [
      "by the largest expression that has no effect",
      "const isMore = (a: number, b: number): boolean => a > b || a < 0;",
      bug("a > b", "a >= b"),
      "=> __compare((a > b || a < 0), [0], () => (a >= b || a < 0 ));",
    ],
    [
      "by what a function makes of it that is called with it",
      "const all = (list: number[]) => list.every((one) => one > 0);",
      bug("one > 0", "one >= 0"),
      "=> __compare((list.every((one) => one > 0)), [0], () => (list.every((one) => one >= 0) ));",
    ],
    [
      "by a condition, if it takes away what depends on one",
      "function f(a?: string) { if (a) return 1; return 2; }",
      bug("if (a) return 1;", ""),
      "if (__compare(!!(a), [0], () => !!(false ))) return 1;",
    ],
    [
      "by what it changes in an expression that waits for an answer",
      "async function f(a: number) { return await send(a + 1); }",
      bug("a + 1", "a + 2"),
      "await send(__compare((a + 1), [0], () => (a + 2 )));",
    ],
    [
      "whether it breaks a line elsewhere or not",
      "function f(a: number) {\n  if (a < 9)\n    return g(a);\n}",
      bug("if (a < 9) return g", "if (a < 8) return g"),
      "if (__compare(!!(a < 9), [0], () => !!(a < 8 ))) return g(a);",
    ],
  ] as const)
    it(name, () => assert.ok(textOf(source, planted).includes(expected), textOf(source, planted)));

  it("with others of the same and of a smaller expression", () => {
    const text = textOf(
      "const f = async (a: number) => (a > 1 ? await g(a > 2) : 0);",
      bug("a > 1", "a > 3"),
      bug("a > 1", "a > 4"),
      bug("a > 2", "a > 5"),
    );
    assert.ok(text.includes("__compare(!!(a > 1), [0,1], () => !!(a > 3 ),() => !!(a > 4 )) ?"), text);
    assert.ok(text.includes("g(__compare((a > 2), [2], () => (a > 5 )))"), text);
  });
});

describe("a planted bug is noted where it runs", () => {
  for (const [name, source, planted, expected] of [
    ["if it waits", "async function f() { await g(); }", bug("await g();", ""), "__note(0);await g();"],
    [
      "if it writes",
      "function f(m: Map<string, string>) { m.set('a', 'b'); }",
      bug("m.set('a', 'b')", "m.clear()"),
      "{ (__note(0), m.set('a', 'b')); }",
    ],
    [
      "if it calls what may write, in a file that waits",
      "async function f() { return store('a'); }",
      bug("store('a')", "'a'"),
      "return (__note(0), store('a'));",
    ],
    ["if it takes away a statement", "function f() { let n = 0; n++; return n; }", bug("n++;", ""), "__note(0);n++;"],
  ] as const)
    it(name, () => assert.ok(textOf(source, planted).includes(expected), textOf(source, planted)));

  it("and nowhere if it changes what is evaluated as the file is loaded", () =>
    assert.deepEqual(compare("const LIMIT = 2;\nexport { LIMIT };", bug("2", "3")).unknown, [0]));
});

it("all bugs of the table have their places in files that still parse", () => {
  const numbered = MUTATIONS.map((mutation, number) => [number, mutation] as const);
  const sources = numbered.filter(([, mutation]) => mutation.file.endsWith(".ts"));
  for (const [file, bugs] of Map.groupBy(sources, ([, mutation]) => mutation.file)) {
    const { text, unknown } = compareBugs(readFileSync(join(import.meta.dirname, "../../..", file), "utf8"), bugs);
    parse(text, { ecmaVersion: "latest", sourceType: "module" });
    for (const [number] of bugs)
      assert.ok(unknown.includes(number) || new RegExp(String.raw`\b${number}\b`).test(text), `${file} ${number}`);
  }
});
