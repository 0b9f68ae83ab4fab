import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { describe, it } from "node:test";
import { type Planted, plantedOf } from "./planted.ts";

const seed = (number: number): string =>
  `seed ${number}: npm run simulate -- --seed ${number} --trace\n  two zones at once\n  another\n`;
const DIGESTS = new Map([
  [4, "abc"],
  [20, "def"],
]);
const played = (output: string, { errors = "", ended = true, differed = 3 } = {}): Planted =>
  plantedOf({ output, errors, ended, seeds: 100, ran: 50, differed, digests: DIGESTS });

describe("a planted bug", () => {
  for (const [name, result, expected] of [
    [
      "is not found by histories without a violation, of which it changes some",
      played("digest abc\ndigest xyz\n2 histories\n"),
      ["not found", 100, "50 seeds run it, it would differ in 3, and of 2 it changes 1"],
    ],
    [
      "is not found if it would differ in no history",
      played("", { differed: 0 }),
      ["not found", 100, "50 seeds run it, and it would differ in none"],
    ],
    ["is found by the first violation", played(seed(4)), ["found", 5, "two zones at once"]],
    [
      "is found after the median of the seeds since the last find",
      played(seed(0) + seed(3) + seed(20)),
      ["found", 3, "two zones at once"],
    ],
    ["is found if it does not load", played("", { errors: "at x\nTypeError: y\n" }), ["found", 5, "TypeError: y"]],
    ["is found if a history does not end", played("", { ended: false }), ["found", 5, "a history does not end"]],
  ] as const)
    it(name, () => assert.deepEqual([result.result, result.seeds, result.what], expected));
});

describe("npm run simulate:planted", () => {
  for (const [args, status, what] of [
    [["--help"], 0, /--plays N/],
    [["--plays", "few"], 2, /--plays is a whole number/],
    [["no", "such", "bug"], 2, /no bug has all of these words/],
  ] as const)
    it(`answers ${args.join(" ")}`, () => {
      const main = join(import.meta.dirname, "sensitivity.ts");
      const run = spawnSync(process.execPath, [main, ...args], { encoding: "utf8" });
      assert.equal(run.status, status);
      assert.match(run.stdout + run.stderr, what);
    });
});
