/** The requirements of node updates: each is named by a test, or docs/node-updates/requirements.md says why not. */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { it } from "node:test";
import { readPage, ROOT } from "./pages.ts";

const files = globSync("test/**/*.ts", { cwd: ROOT });
const named = new Set(
  files.flatMap((file) => [...readFileSync(join(ROOT, file), "utf8").matchAll(/\bN[RW]\d{1,2}\b/g)].map(([id]) => id)),
);
const rows = [
  ...readPage("docs/node-updates/requirements.md").matchAll(/^\| (?<id>N[RW]\d{1,2}) \| .* \| (?<state>.*) ?\|$/gm),
].map(({ groups }) => groups);
const listed = new Map(rows.map((row) => [row?.["id"] ?? "", row?.["state"] ?? ""]));

it("lists the 43 requirements and the 29 weaknesses", () => assert.deepEqual([rows.length, listed.size], [72, 72]));
it("lists every id that a test names", () =>
  assert.deepEqual(
    [...named].filter((id) => !listed.has(id)),
    [],
  ));
it("says of every other one why no test names it", () =>
  assert.deepEqual(
    [...listed].filter(([id, state]) => !named.has(id) && !/^Not covered: \S/.test(state)).map(([id]) => id),
    [],
  ));
