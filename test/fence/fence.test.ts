/** Plants violations of the architecture in a copy of the tree's skeleton, and expects the linter to name each. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { before, describe, it } from "node:test";
import { PLANTED } from "./planted.ts";

const root = join(import.meta.dirname, "../..");
let output = "";
const RULES = ["pure", "access", "imports"].map((name) => `test/fence/${name}.js`);

before(() => {
  const copy = mkdtempSync(join(tmpdir(), "fence-"));
  for (const path of [".oxlintrc.json", "tsconfig.json", "package.json", ...RULES])
    cpSync(join(root, path), join(copy, path));
  symlinkSync(join(root, "node_modules"), join(copy, "node_modules"));
  for (const { path, content } of PLANTED) {
    mkdirSync(dirname(join(copy, path)), { recursive: true });
    writeFileSync(join(copy, path), content);
  }
  const linter = spawnSync(
    join(root, "node_modules/.bin/oxlint"),
    ["-f", "unix", "cli", "functions", "infra", "reconciler"],
    {
      cwd: copy,
      encoding: "utf8",
    },
  );
  output = linter.stdout + linter.stderr;
  rmSync(copy, { recursive: true, force: true });
});

describe("the architecture fence", () => {
  for (const { name, path, rule } of PLANTED) {
    it(`${rule ? "reports" : "is silent"} when ${name}`, () => {
      const said = output.split("\n").filter((line) => line.startsWith(`${path}:`));
      if (rule) assert.ok(said.join("\n").includes(rule), said.join("\n"));
      else assert.deepEqual(said, []);
    });
  }

  it("lists only files and folders that are there", () => {
    const listed = readFileSync(join(root, ".oxlintrc.json"), "utf8").matchAll(
      /"((?:cli|functions|reconciler|infra)\/[^"*]*)/g,
    );
    const missing = [...listed].map(([, path = ""]) => path).filter((path) => !existsSync(join(root, path)));
    assert.deepEqual(missing, []);
  });
});
