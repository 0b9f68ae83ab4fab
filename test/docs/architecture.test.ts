/**
 * ARCHITECTURE.md names only existing files and functions (links.test.ts has paths), and the floors of imports are those
 * of the lint rule.
 */
import assert from "node:assert/strict";
import { globSync } from "node:fs";
import { basename } from "node:path";
import { it } from "node:test";
import { readPage, ROOT } from "./pages.ts";

const text = readPage("ARCHITECTURE.md");

it("every file that ARCHITECTURE.md names without its path exists", () => {
  const files = new Set(
    globSync("{cli,functions,reconciler,infra,test}/**/*.ts", { cwd: ROOT }).map((path) => basename(path)),
  );
  const named = [...text.matchAll(/[\w.-]+\.ts\b/g)].map(([name]) => name);
  assert.deepEqual(
    named.filter((name) => !files.has(name)),
    [],
  );
});

it("every function that ARCHITECTURE.md places in a file is in that file", () => {
  const places = [...text.matchAll(/`(?<name>\w+)` in `(?<path>[\w/-]+\.ts)`/g)].map(({ groups = {} }) => groups);
  assert.ok(places.length > 5, `${places.length} functions`);
  assert.deepEqual(
    places.filter(({ name = "", path = "" }) => !new RegExp(`\\b${name}\\b`).test(readPage(path))),
    [],
  );
});

it("the floors of ARCHITECTURE.md are those that lint knows", () => {
  const { overrides } = JSON.parse(readPage(".oxlintrc.json")) as { overrides: { rules: Record<string, unknown> }[] };
  const [, rows = []] =
    overrides.map(({ rules }) => rules["access/downwards"] as [string, string[][]] | undefined).find(Boolean) ?? [];
  const floors = [...text.matchAll(/^\| \d+ \| (.*) \|$/gm)].map(([, folders = ""]) =>
    folders.replaceAll(/[`,]|\/(?=`)/g, "").split(" "),
  );
  assert.deepEqual(floors, rows);
});
