/** docs/behaviour.md has every rule that a comment cites, and every acceptance id that a test names. */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { PAGES, readPage } from "./docs/pages.ts";

const root = join(import.meta.dirname, "..");
const page = readFileSync(join(root, "docs/behaviour.md"), "utf8");

interface Source {
  readonly file: string;
  readonly text: string;
}

/** This file plants its own citations and ids. */
const files = globSync("{cli,functions,reconciler,infra,test}/**/*.ts", { cwd: root }).filter(
  (file) => file !== "test/behaviour.test.ts",
);
const sources = files.map((file): Source => ({ file, text: readFileSync(join(root, file), "utf8") }));
const tests = sources.filter(({ file }) => file.startsWith("test/"));

/** A heading, a bold beginning, or the first cell of a row. */
const ANCHOR = /(?:^#+ |\*\*|^\| )§(?<number>\d+(?:\.\d+)*[a-f]?)\b/gm;
const ROW = /^\| (?<id>[A-Z]\d\d) \| (?<rest>.*) \|$/gm;
const NOT_COVERED = /\| Not covered: \S/;

// Strings are matched first, so that text in a string does not count as a comment.
const COMMENT = /"(?:\\.|[^"\\\n])*"|\/\*[^]*?\*\/|(?<!:)\/\/.*/g;
const CITATION = /§(?<number>\d+(?:\.\d+)*[a-f]?)/g;
const CITATION_ONCE = /§\d/;
/** The tests do not check such a citation. */
const OTHER_FORM = /(?<!\w)\[\d+\.\d[^\]]*\]|\bspec \d+\.\d|§\s+\d/g;
/** One id, or the first and the last of several: `X05 - X08`. */
const ID = /(?<=^|["'`(\s*-])(?<family>[A-Z])(?<first>\d\d)(?:\s*-\s*\k<family>(?<last>\d\d))?(?=$|["'`:,.)\s-])/gm;

const anchorsOf = (text: string): string[] => [...text.matchAll(ANCHOR)].map(({ groups }) => groups?.["number"] ?? "");
const rowsOf = (text: string): { id: string; rest: string }[] =>
  [...text.matchAll(ROW)].map(({ groups }) => ({ id: groups?.["id"] ?? "", rest: `| ${groups?.["rest"]}` }));
const twice = (items: readonly string[]): string[] => items.filter((item, at) => items.indexOf(item) !== at);

/** The matches in the comments of a file. */
function inComments(text: string, pattern: RegExp): RegExpExecArray[] {
  const comments = [...text.matchAll(COMMENT)].map(([found]) => found).filter((found) => found.startsWith("/"));
  return comments.flatMap((comment) => [...comment.matchAll(pattern)]);
}

const citationsOf = (text: string): string[] =>
  inComments(text, CITATION).map(({ groups }) => groups?.["number"] ?? "");

function idsOf(text: string): string[] {
  return [...text.matchAll(ID)].flatMap(({ groups = {} }) => {
    const { family = "", first = "" } = groups;
    const from = Number(first);
    const to = Number(groups["last"] ?? first);
    return Array.from({ length: to - from + 1 }, (_, i) => `${family}${String(from + i).padStart(2, "0")}`);
  });
}

/** Citations without a target, with their file. */
function findDead(text: string, all: readonly Source[]): string[] {
  const anchors = new Set(anchorsOf(text));
  return all.flatMap((source) =>
    citationsOf(source.text).flatMap((number) => (anchors.has(number) ? [] : `${source.file} §${number}`)),
  );
}

/** Citations in another form than `§1.5.4`, with their file. */
function findOtherForms(all: readonly Source[]): string[] {
  return all.flatMap((source) => inComments(source.text, OTHER_FORM).map(([found]) => `${source.file} ${found}`));
}

/** Ids that tests name and the page does not list, with their file. */
function findUnknown(text: string, all: readonly Source[]): string[] {
  const listed = new Set(rowsOf(text).map(({ id }) => id));
  return all.flatMap((source) => idsOf(source.text).flatMap((id) => (listed.has(id) ? [] : `${source.file} ${id}`)));
}

/** Listed ids that no test names and that give no reason, or that give one although a test names them. */
function findMismarked(text: string, all: readonly Source[]): string[] {
  const named = new Set(all.flatMap((source) => idsOf(source.text)));
  return rowsOf(text).flatMap(({ id, rest }) => (named.has(id) === NOT_COVERED.test(rest) ? id : []));
}

describe("docs/behaviour.md", () => {
  it("has every rule that a comment cites", () => assert.deepEqual(findDead(page, sources), []));
  it("is cited in one form", () => assert.deepEqual(findOtherForms(sources), []));
  it("is checked against the product and its tests", () => {
    for (const folder of ["functions", "reconciler", "infra", "test"])
      assert.notDeepEqual(
        findDead(
          "",
          sources.filter(({ file }) => file.startsWith(`${folder}/`)),
        ),
        [],
        folder,
      );
    assert.notDeepEqual(findUnknown("", tests), []);
  });
  for (const path of PAGES.filter((one) => CITATION_ONCE.test(readPage(one))))
    it(`has every rule that ${path} refers to`, () => {
      const anchors = new Set(anchorsOf(page));
      assert.deepEqual(
        [...readPage(path).matchAll(CITATION)].flatMap(({ groups }) =>
          anchors.has(groups?.["number"] ?? "") ? [] : groups?.["number"],
        ),
        [],
      );
    });
  it("lists every acceptance id that a test names", () => assert.deepEqual(findUnknown(page, tests), []));
  it("gives the reason for every id that is not covered", () => assert.deepEqual(findMismarked(page, tests), []));
  it("defines nothing twice", () =>
    assert.deepEqual([twice(anchorsOf(page)), twice(rowsOf(page).map(({ id }) => id))], [[], []]));
});

describe("the check of the page", () => {
  const small = "## §1 One\n**§1.1 Rule.**\n| §1.2a | x |\n| R01 | a | b |\n| R02 | a | Not covered: no reason to |\n";
  const plant = (text: string): Source[] => [{ file: "x.ts", text }];

  for (const text of [
    "// §1.1.",
    "/** Two: §1, §1.2a. */",
    "// (§1.1, §1.2a)",
    "/* §1.1-§1.2a */",
    `f("// §9", "§9");`,
  ])
    it(`takes ${text}`, () => assert.deepEqual(findDead(small, plant(text)), []));
  for (const text of ["// §1.3", "/**\n * No rule (§1.1, §1.3).\n */", "const x = 1; // §1.3", "/* §1.1-§1.3 */"])
    it(`finds the dead citation in ${JSON.stringify(text)}`, () =>
      assert.deepEqual(findDead(small, plant(text)), ["x.ts §1.3"]));

  for (const [text, found] of [
    ["/** Once [1.1, 1.2]. */", "[1.1, 1.2]"],
    ["// spec 1.1", "spec 1.1"],
    ["// § 1.1", "§ 1"],
  ] as const)
    it(`finds another form in ${text}`, () => assert.deepEqual(findOtherForms(plant(text)), [`x.ts ${found}`]));
  it("accepts numbers in brackets in code", () =>
    assert.deepEqual(findOtherForms(plant(`f("// [1.1]", a[0], [0.5, 1.5]); // a[0], [0]`)), []));

  for (const text of [
    `it("R03 x")`,
    "it(`R01 R03: x`)",
    `it("x (R01, R03)")`,
    `["R01-R03 x", 1]`,
    "/** R03, the same alone. */",
  ])
    it(`finds the unknown id in ${text}`, () => assert.ok(findUnknown(small, plant(text)).includes("x.ts R03")));
  it("accepts listed ids, and text without ids", () =>
    assert.deepEqual(findUnknown(small, plant(`it("R01: x"); it("x (R02)"); const key = "a+R77/";`)), []));

  it("finds an id that no test names, and one that is marked as not covered and is covered", () => {
    assert.deepEqual(findMismarked(small, plant(`it("R02 x")`)), ["R01", "R02"]);
    assert.deepEqual(findMismarked(small, plant(`it("R01 x")`)), []);
  });
  it("finds duplicate definitions", () => assert.deepEqual(twice(anchorsOf(`${small}### §1.1 Again`)), ["1.1"]));
});
