/** When processes of a kind count as untroubled. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createQuiet } from "./quiet.ts";

describe("processes of a kind", () => {
  for (const [name, run, isQuiet] of [
    ["nothing", () => {}, true],
    ["a fault of their calls", (quiet) => quiet.noteFault("requestLost at webhooks PATCH pods"), false],
    ["a fault of others' calls", (quiet) => quiet.noteFault("requestLost at reconciler PATCH pods"), true],
    ["a death", (quiet) => quiet.noteDeath("webhooks-2"), false],
  ] as const satisfies readonly (readonly [string, (quiet: ReturnType<typeof createQuiet>) => void, boolean])[])
    it(`are ${isQuiet ? "quiet" : "not"} after ${name}`, () => {
      let now = 0;
      const quiet = createQuiet({ now: () => now, processes: () => [] });
      now = 6000;
      run(quiet);
      assert.equal(quiet.isQuiet("webhooks", 10_000), isQuiet);
      assert.equal(quiet.isQuiet("webhooks", 12_000), true);
    });

  it("are not quiet while one stands still", () => {
    const stoodStillMs = (since: number): number => Math.max(0, 5500 - since);
    const quiet = createQuiet({ now: () => 0, processes: () => [{ name: "webhooks-1", stoodStillMs }] });
    assert.deepEqual(
      [10_000, 11_000].map((since) => quiet.isQuiet("webhooks", since)),
      [false, true],
    );
  });
});
