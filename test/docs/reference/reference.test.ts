/** The generated tables of the documentation are those of the code. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { PAGES, readPage } from "../pages.ts";
import { BLOCKS, renderBlocks } from "./render.ts";

const found = PAGES.filter((path) => readPage(path).includes("<!-- generated: "));

it("every table is in one page", () => {
  const names = found.flatMap((path) =>
    [...readPage(path).matchAll(/<!-- generated: ([\w-]+) -->/g)].map(([, name]) => name),
  );
  assert.deepEqual(names.toSorted(), Object.keys(BLOCKS).toSorted());
});

for (const path of found)
  it(`${path} has the tables of the code: otherwise run npm run docs`, () =>
    assert.equal(readPage(path), renderBlocks(readPage(path))));
