/** docs/spec/behaviour.md has every rule that a comment cites. */
import assert from "node:assert/strict";
import { globSync } from "node:fs";
import { describe, it } from "node:test";
import { PAGES, readPage, ROOT } from "./docs/pages.ts";

const SPECIFICATION = "docs/spec/behaviour.md";

interface Source {
  readonly file: string;
  readonly text: string;
}

/** This file plants citations of its own. */
const files = globSync("{cli,functions,reconciler,infra,test}/**/*.ts", { cwd: ROOT }).filter(
  (file) => file !== "test/behaviour.test.ts",
);
const sources = files.map((file): Source => ({ file, text: readPage(file) }));

/** A heading, a bold beginning, or the first cell of a row. */
const ANCHOR = /(?:^#+ |\*\*|^\| )§(?<number>\d+(?:\.\d+)*[a-f]?)\b/gm;
// Strings are matched first, so that text in a string does not count as a comment.
const COMMENT = /"(?:\\.|[^"\\\n])*"|\/\*[^]*?\*\/|(?<!:)\/\/.*/g;
const CITATION = /§(?<number>\d+(?:\.\d+)*[a-f]?)/g;

const numbersIn = (text: string, pattern: RegExp): string[] =>
  [...text.matchAll(pattern)].map(({ groups }) => groups?.["number"] ?? "");
const commentsOf = (text: string): string =>
  [...text.matchAll(COMMENT)].flatMap(([found]) => (found.startsWith("/") ? [found] : [])).join("\n");

/** Citations without a rule, with their file. */
function findDead(page: string, all: readonly Source[]): string[] {
  const rules = new Set(numbersIn(page, ANCHOR));
  return all.flatMap(({ file, text }) =>
    numbersIn(text, CITATION).flatMap((number) => (rules.has(number) ? [] : `${file} §${number}`)),
  );
}

describe("the specification", () => {
  const page = readPage(SPECIFICATION);

  it("has every rule that a comment cites", () =>
    assert.deepEqual(
      findDead(
        page,
        sources.map(({ file, text }) => ({ file, text: commentsOf(text) })),
      ),
      [],
    ));
  it("has every rule that a page refers to", () =>
    assert.deepEqual(
      findDead(
        page,
        PAGES.map((file) => ({ file, text: readPage(file) })),
      ),
      [],
    ));
  it("has each rule once", () => {
    const rules = numbersIn(page, ANCHOR);
    assert.deepEqual(
      rules.filter((rule, i) => rules.indexOf(rule) !== i),
      [],
    );
  });
});

describe("the search for dead citations", () => {
  const page = "## §1 One\n**§1.1 Rule.**\n| §1.2a | x |\n";

  for (const [text, dead] of [
    ["/** Two: §1, §1.2a. */", []],
    ["/* §1.1-§1.2a */", []],
    [`f("// §9", "§9");`, []],
    ["// §1.3", ["x.ts §1.3"]],
    ["/**\n * No rule (§1.1, §1.3).\n */", ["x.ts §1.3"]],
    ["const x = 1; // §1.3", ["x.ts §1.3"]],
  ] as const)
    it(`finds ${dead.length} in ${JSON.stringify(text)}`, () =>
      assert.deepEqual(findDead(page, [{ file: "x.ts", text: commentsOf(text) }]), dead));
});
