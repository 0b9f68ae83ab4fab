import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { findMissing, type Machine } from "./find-node.ts";

const whole: Machine = { platform: "linux", uid: 0, hasCommand: () => true, nodeRuns: true };

const CASES: readonly [string, Partial<Machine>, RegExp][] = [
  ["not Linux", { platform: "darwin", uid: 501, nodeRuns: false }, /need Linux, this is darwin/],
  ["not root", { uid: 1000 }, /need root/],
  ["no ids of users", { uid: undefined }, /need root/],
  [
    "no containerd",
    { hasCommand: (name) => name !== "containerd" },
    /^containerd missing: `test\/plane\/real-node up`/,
  ],
  ["no buildah and no runc", { hasCommand: (name) => !["buildah", "runc"].includes(name) }, /^runc, buildah missing/],
  ["no real node", { nodeRuns: false }, /without a real node: `test\/plane\/real-node up`/],
];

describe("the tests on a real node", () => {
  it("run where all is there", () => assert.equal(findMissing(whole), undefined));
  for (const [name, lack, says] of CASES)
    it(`are left out with a reason: ${name}`, () => assert.match(findMissing({ ...whole, ...lack }) ?? "", says));
});
