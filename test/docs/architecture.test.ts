import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { it } from "node:test";

const ROOT = join(import.meta.dirname, "../..");

it("every file and folder that ARCHITECTURE.md names by its path is there", () => {
  const text = readFileSync(join(ROOT, "ARCHITECTURE.md"), "utf8");
  const paths = [...text.matchAll(/`((?:functions|reconciler|infra|test|docs)\/[\w./-]*)`/g)].map(([, path]) => path ?? "");
  assert.ok(paths.length > 20, `${paths.length} paths`);
  assert.deepEqual(
    paths.filter((path) => !existsSync(join(ROOT, path))),
    [],
  );
});
