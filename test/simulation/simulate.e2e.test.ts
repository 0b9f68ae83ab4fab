import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { describe, it } from "node:test";

/** Runs the command with a planted bug that the first deletion of a pod shows. */
function simulate(...args: readonly string[]) {
  const [plant, main] = ["plant.ts", "simulate.ts"].map((name) => join(import.meta.dirname, name));
  const env = { ...process.env, ZONEWISE_PLANT: "a deletion carries the UID of the judged pod" };
  const { status, stdout, stderr } = spawnSync(process.execPath, ["--import", plant ?? "", main ?? "", ...args], {
    env,
    encoding: "utf8",
  });
  return { status, stdout, stderr };
}

describe("npm run simulate", () => {
  it("shrinks the history that shows a planted bug, and prints a command that plays it again, byte for byte", () => {
    // Some 160 histories.
    const { status, stdout } = simulate("--from", "16", "--seeds", "1", "--rest", "0");
    assert.equal(status, 1, stdout);
    const [, zones, actions, faults, digest] =
      /to (\d+) of \d+ zones, (\d+) of \d+ actions and (\d+) of \d+ faults, .*\(digest (\w+)\)/.exec(stdout) ?? [];
    assert.deepEqual([zones, actions, faults], ["1", "0", "0"], stdout);
    const [, command = ""] = /npm run simulate -- (--seed \d+ --with .*) --trace/.exec(stdout) ?? [];
    const again = simulate(...command.split(" "), "--rest", "0");
    assert.match(again.stdout, new RegExp(`^digest ${digest}$`, "m"));
    assert.match(again.stdout, /for a pod that it may not have judged/);
  });

  it("names the seed of a history that throws, and goes on", () => {
    const broken = `import { AsyncLocalStorage } from "node:async_hooks";
      AsyncLocalStorage.prototype.run = () => { throw new Error("planted"); };`;
    const main = join(import.meta.dirname, "simulate.ts");
    const imported = `data:text/javascript,${encodeURIComponent(broken)}`;
    const args = ["--import", imported, main, "--seed", "4,7", "--rest", "0"];
    const { status, stdout } = spawnSync(process.execPath, args, { encoding: "utf8" });
    assert.equal(status, 1, stdout);
    for (const seed of [4, 7])
      assert.match(
        stdout,
        new RegExp(`^seed ${seed}: npm run simulate -- --seed ${seed} --trace\n  throws Error: planted`, "m"),
      );
  });

  for (const [args, what] of [
    [["--sed", "1"], /'--sed'/],
    [["--actions", "1"], /belong to one --seed/],
    [["--actions", "1", "--seed", "1,2"], /belong to one --seed/],
    [["--seed", "one"], /--seed has numbers/],
  ] as const)
    it(`refuses ${args.join(" ")}`, () => {
      const { status, stderr } = simulate(...args);
      assert.equal(status, 2);
      assert.match(stderr, what);
    });
});

describe("npm run simulate:planted", () => {
  const planted = (...args: readonly string[]) =>
    spawnSync(process.execPath, [join(import.meta.dirname, "planted.ts"), ...args], { encoding: "utf8" });

  it("says which violation shows a bug", () => {
    const { stdout } = planted("UID", "judged", "deletion", "--from", "16", "--seeds", "1", "--rest", "0");
    assert.match(stdout, /^found\ta deletion carries the UID of the judged pod\t.*\tseed 16: .* may not have judged/m);
  });

  it("refuses words that no bug has", () => assert.equal(planted("no", "such", "bug").status, 2));
});
