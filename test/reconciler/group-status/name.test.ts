import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { nameOfGroup } from "../../../reconciler/group-status/status.ts";

describe("the name of a RolloutGroup", () => {
  for (const [label, name] of [
    ["ingester", "ingester"],
    ["store.gateway-2", "store.gateway-2"],
    ["Ingester", /^group-ingester-[0-9a-f]{8}$/],
    ["a_b", /^group-a-b-[0-9a-f]{8}$/],
    ["", /^group-[0-9a-f]{8}$/],
  ] as const)
    it(`of "${label}" is ${String(name)}`, () =>
      typeof name === "string" ? assert.equal(nameOfGroup(label), name) : assert.match(nameOfGroup(label), name));
  it("tells groups apart that differ only in capitals", () => assert.notEqual(nameOfGroup("Ab"), nameOfGroup("aB")));
});
