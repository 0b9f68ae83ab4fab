/** What npm puts on the PATH, in a clone that is not built. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { it } from "node:test";

const LAUNCHER = join(import.meta.dirname, "../../cli/zonewise.js");

it("npm hands on the flags of the way that the documentation shows", () => {
  const ROOT = join(import.meta.dirname, "../..");
  const { stderr } = spawnSync("npx", ["--no", "--", "zonewise", "-n"], { encoding: "utf8", cwd: ROOT });
  assert.match(stderr, /^error: option '-n, --namespace <name>' argument missing$/m);
});

it("a Node.js that cannot run the source says what to do, in one line", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "launcher-"));
  t.after(() => rmSync(folder, { recursive: true }));
  cpSync(LAUNCHER, join(folder, "cli/zonewise.js"));
  cpSync(join(LAUNCHER, "../../package.json"), join(folder, "package.json"));
  const { status, stderr } = spawnSync(process.execPath, ["--no-strip-types", join(folder, "cli/zonewise.js")], {
    encoding: "utf8",
  });
  assert.deepEqual([status, stderr.trim().split("\n").length], [2, 1], stderr);
  assert.match(stderr, /npx --no -- zonewise .*npm run build/);
});
