/** docs/parity.md says for each release of the original what Zonewise does, by a section that exists or with a reason. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { readPage } from "./pages.ts";

const page = readPage("docs/parity.md");
const ROW = /^\| (?<release>\d+\.\d+\.\d+) \| (?<entry>.+) \| (?<here>.+) \|$/gm;
const rows = [...page.matchAll(ROW)].map(({ groups = {} }) => groups);
const sections = new Set(
  [...readPage("docs/spec/behaviour.md").matchAll(/(?<=^#+ )§\d+|§\d+(?:\.\d+)*(?=[^\n]*\*\*)/gm)].map(([one]) => one),
);

describe("docs/parity.md", () => {
  for (const { release, entry = "", here = "" } of rows)
    it(`${release}, ${entry.slice(0, 50)}: names sections that exist, or a reason`, () => {
      const named = [...here.matchAll(/§\d+(?:\.\d+)*/g)].map(([section]) => section);
      assert.deepEqual(
        named.filter((section) => !sections.has(section)),
        [],
      );
      assert.ok(named.length > 0 || /^none: .+/.test(here) || here === "not read", here);
    });

  it("and the README claim the same release, which is the newest that was read", () => {
    const claims = [page, readPage("README.md")].map((text) => /matches rollout-operator (\d+\.\d+)/.exec(text)?.[1]);
    const read = rows.findLast(({ here }) => here !== "not read")?.["release"] ?? "";
    assert.deepEqual(claims, Array(2).fill(read.replace(/\.\d+$/, "")));
  });
});
