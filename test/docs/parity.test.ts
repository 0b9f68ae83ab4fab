/** docs/parity.md says for each release of the original what Zonewise does, by a section that exists or with a reason. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { readPage } from "./pages.ts";

const page = readPage("docs/parity.md");
const ROW = /^\| (?<release>\d+\.\d+\.\d+) \| (?<entry>.+) \| (?<here>.+) \|$/gm;
const rows = [...page.matchAll(ROW)].map(({ groups = {} }) => groups);
const sections = new Set(
  [...readPage("docs/behaviour.md").matchAll(/(?<=^#+ )§\d+|§\d+(?:\.\d+)*(?=[^\n]*\*\*)/gm)].map(([one]) => one),
);

describe("docs/parity.md", () => {
  it("has a row of each minor release from 0.30 to the one matched, the older first", () => {
    const minors = rows.map(({ release = "" }) => Number(release.split(".")[1]));
    assert.ok(rows.length > 20, `${rows.length} rows`);
    assert.equal(minors[0], 30);
    assert.deepEqual(
      minors,
      minors.toSorted((a, b) => a - b),
    );
    const last = Number(/matches rollout-operator 0\.(\d+)/.exec(page)?.[1]);
    const wanted = Array.from({ length: last - 29 }, (_, i) => 30 + i);
    assert.deepEqual(
      wanted.filter((minor) => !minors.includes(minor)),
      [],
    );
  });

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
