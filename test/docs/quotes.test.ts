/** The documentation names scripts that exist, and calls them so that they get their flags. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { PAGES, readPage } from "./pages.ts";

describe("the documentation", () => {
  const pages = PAGES.map((path) => ({ path, text: readPage(path) }));

  it("ends npm's own flags before zonewise: npm drops -n otherwise", () => {
    const shown = pages.flatMap(({ path, text }) =>
      [...text.matchAll(/\bnpx .*zonewise/g)].map(([line]) => ({ path, line })),
    );
    assert.ok(shown.length > 2, `${shown.length} lines`);
    assert.deepEqual(
      // As published, it needs no clone.
      shown.filter(({ line }) => line !== "npx zonewise" && !line.startsWith("npx --no -- ")),
      [],
    );
  });

  it("names only scripts that exist", () => {
    const { scripts } = JSON.parse(readPage("package.json")) as { readonly scripts: Readonly<Record<string, string>> };
    const named = pages.flatMap(({ text }) => [
      ...text.matchAll(/\bnpm (?:run )?(?<script>start|test|(?<=run )[\w:]+)/g),
    ]);
    assert.ok(named.length > 8, `${named.length} scripts`);
    assert.deepEqual(
      named.map(({ groups }) => groups?.["script"] ?? "").filter((script) => scripts[script] === undefined),
      [],
    );
  });
});
