import assert from "node:assert/strict";
import { cpSync, globSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { it } from "node:test";
import { buildAll } from "../../infra/build.ts";

const root = join(import.meta.dirname, "../..");

/** All files below a folder, with their contents. */
const filesOf = (folder: string): Record<string, string> =>
  Object.fromEntries(
    globSync("**/*.{js,json}", { cwd: folder })
      .toSorted()
      .map((path) => [path, readFileSync(join(folder, path), "utf8")]),
  );

it("a build of the same sources in another place gives the same bytes", async (t) => {
  const directory = mkdtempSync(join(tmpdir(), "zonewise-"));
  t.after(() => rmSync(directory, { recursive: true }));
  const dist = join(directory, "dist");
  await buildAll(root, dist);
  const copy = join(directory, "elsewhere/copy");
  for (const part of ["cli", "functions", "reconciler", "infra", "package.json", "package-lock.json", "tsconfig.json"])
    cpSync(join(root, part), join(copy, part), { recursive: true });
  symlinkSync(join(root, "node_modules"), join(copy, "node_modules"));
  const again = join(directory, "again");
  await buildAll(copy, again);
  assert.deepEqual(Object.keys(filesOf(again)), Object.keys(filesOf(dist)));
  for (const [path, text] of Object.entries(filesOf(again))) assert.ok(text === filesOf(dist)[path], `${path} differs`);
});
