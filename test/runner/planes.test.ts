/** Which planes of the gate run a test of a real cluster. */
import assert from "node:assert/strict";
import { globSync } from "node:fs";
import { join } from "node:path";
import { it } from "node:test";
import { filesFor } from "./files.ts";

it("each test of a real cluster runs on one of the gate's control planes, those that need the node on the first", () => {
  const all = globSync("test/cluster/**/*.cluster.ts", { cwd: join(import.meta.dirname, "../..") });
  const [first, other] = [filesFor(all, true), filesFor(all, false)];
  assert.deepEqual(first.toSorted(), all.toSorted());
  const atNode = first.filter((path) => !other.includes(path));
  assert.deepEqual(atNode, all.filter((path) => path.includes("/real-node/")).toSorted());
  assert.ok(atNode.length > 0);
  assert.deepEqual(first.slice(0, atNode.length), atNode);
});
