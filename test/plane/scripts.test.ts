/** The scripts need Go, root or minutes to run: the gate runs them. Here what costs nothing. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { accessSync, constants, globSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { filesFor } from "../runner/files.ts";

const at = (path: string): string => join(import.meta.dirname, path);

const COMMANDS = ["build", "down", "image", "knative/prove", "knative/serving", "real-node", "restart", "up"];
const SOURCED = [
  "env",
  "settings.sh",
  ...readdirSync(at("real")).flatMap((name) => (name.endsWith(".sh") ? [`real/${name}`] : [])),
];

describe("the scripts of the control plane", () => {
  for (const name of [...COMMANDS, ...SOURCED])
    it(`${name} is bash`, () => {
      const { status, stderr } = spawnSync("bash", ["-n", at(name)], { encoding: "utf8" });
      assert.equal(status, 0, stderr);
    });
  for (const name of COMMANDS) it(`${name} can be run`, () => accessSync(at(name), constants.X_OK));
});

it("each test of a real cluster runs on one of the gate's control planes, those that need the node on the first", () => {
  const all = globSync("test/cluster/**/*.cluster.ts", { cwd: at("../..") });
  const [first, other] = [filesFor(all, true), filesFor(all, false)];
  assert.deepEqual(first.toSorted(), all.toSorted());
  const atNode = first.filter((path) => !other.includes(path));
  assert.deepEqual(atNode, all.filter((path) => path.includes("/real-node/")).toSorted());
  assert.ok(atNode.length > 0);
  assert.deepEqual(first.slice(0, atNode.length), atNode);
});
