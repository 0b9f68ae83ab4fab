import assert from "node:assert/strict";
import { it } from "node:test";
import { play } from "./play.ts";

it("nodes get their updates one after the other, and their pods move (seed 11)", async () => {
  const lines: string[] = [];
  const { violations } = await play(11, { restMs: 0, trace: (line) => void lines.push(line) });
  assert.deepEqual(violations, []);
  const nodesThat = (what: string): string[] =>
    lines.flatMap((line) => new RegExp(` host +(\\S+) ${what}$`).exec(line)?.[1] ?? []);
  assert.ok(nodesThat("asked").length > 1, "hosts are asked to reboot");
  assert.deepEqual(nodesThat("up").toSorted(), nodesThat("down").toSorted());
  assert.ok(
    lines.some((line) => /node-api-\d+ +POST pods\/ingester-\S+\/eviction -> 201/.test(line)),
    "pods are evicted",
  );
});
