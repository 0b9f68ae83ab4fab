/** A bug for each oracle, and a seed whose history shows it: an oracle that notices nothing any more is found here. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { describe, it } from "node:test";

const ROWS: readonly (readonly [bug: string, seed: number, violation: RegExp])[] = [
  ["a status is patched only on the version that was read", 151, /without the version that it has read/],
  ["a zone with serving pods waits for its gates", 187, /although its gate has not passed/],
  ["a reservation is written before the eviction is allowed", 329, /is taken by .* without a reservation/],
  ["the Lease of a group excludes other requests", 141, /takes Lease zonewise-downscale-/],
  ["a renewal keeps the old CA in the bundle", 257, /a renewal of the certificate has broken/],
  ["no pod that serves is taken while the window of its zone is closed", 378, /by a window that nobody can read/],
];

describe("a planted bug is found", () => {
  const [plant = "", simulate = ""] = ["plant.ts", "simulate.ts"].map((name) => join(import.meta.dirname, name));
  for (const [bug, seed, violation] of ROWS)
    it(bug, () => {
      const args = ["--import", plant, simulate, "--seed", String(seed), "--rest", "0", "--finds", "1"];
      const env = { ...process.env, ZONEWISE_PLANT: bug };
      const { status, stdout } = spawnSync(process.execPath, args, { env, encoding: "utf8" });
      assert.equal(status, 1, stdout);
      assert.match(stdout, violation);
    });
});
