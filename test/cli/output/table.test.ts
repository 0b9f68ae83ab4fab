import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { plain } from "../../../cli/output/text.ts";
import { formatTable, wrapWords, type Column } from "../../../cli/output/table.ts";

const COLUMNS: readonly Column[] = [
  { heading: "NAME" },
  { heading: "READY", rank: 2 },
  { heading: "AGE", rank: 3 },
  { heading: "MESSAGE", rank: 1 },
];
const ROW = ["ingester", "3/3", "5m", "zone-b waits until all pods of zone-a are ready again"];

const show = (width: number | undefined, rows = [ROW]): string[] =>
  formatTable(COLUMNS, rows, { style: plain, width: () => width })
    .split("\n")
    .slice(0, -1);

describe("a table", () => {
  const WHOLE = [
    "NAME      READY  AGE  MESSAGE",
    "ingester  3/3    5m   zone-b waits until all pods of zone-a are ready again",
  ];
  it("has all columns and one line a row without a terminal", () => assert.deepEqual(show(undefined), WHOLE));
  it("has them where there is room", () => assert.deepEqual(show(75), WHOLE));
  it("breaks its last column between words, below itself", () =>
    assert.deepEqual(show(60), [
      "NAME      READY  AGE  MESSAGE",
      "ingester  3/3    5m   zone-b waits until all pods of zone-a",
      "                      are ready again",
    ]));
  it("leaves out the columns that matter least before a sentence gets too narrow", () =>
    assert.deepEqual(show(50), [
      "NAME      READY  MESSAGE",
      "ingester  3/3    zone-b waits until all pods of",
      "                 zone-a are ready again",
    ]));
  it("leaves out empty columns first", () =>
    assert.deepEqual(show(50, [["ingester", "", "5m", ROW[3] ?? ""]])[0], "NAME      AGE  MESSAGE"));
  it("keeps the columns without a rank, whatever the room", () => assert.deepEqual(show(5), ["NAME", "ingester"]));
});

describe("words", () => {
  const CASES: readonly (readonly [text: string, most: number, lines: readonly string[]])[] = [
    ["", 10, [""]],
    ["one two three", 20, ["one two three"]],
    ["one two three", 7, ["one two", "three"]],
    ["  one two three", 9, ["  one two", "  three"]],
    ["incomprehensible words", 5, ["incomprehensible", "words"]],
  ];
  for (const [text, most, lines] of CASES)
    it(`are kept whole: "${text}" at ${most}`, () => assert.deepEqual(wrapWords(text, most), lines));
});
