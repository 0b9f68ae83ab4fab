import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { allowedActive, NO_STATUS, readPolicy } from "../../../reconciler/nodes/policy.ts";
import { planOf } from "./adapter.ts";
import { busyNode, entry, node, policy, startedBy } from "./fixture.ts";

const metadata = { name: "default", uid: "policy-uid", resourceVersion: "7", generation: 1 };
const edited = (spec: object) => {
  const status = { ...NO_STATUS, active: [entry("a", { phase: "Monitoring" })] };
  return readPolicy({ metadata, spec, status });
};

describe("a policy that is edited into one that cannot be obeyed", () => {
  const invalid = { window: { cron: "61 * * * * *", timeZone: "UTC" } };

  it("starts nothing, and says why", () => {
    const plan = planOf([node("b")], { policy: { ...edited(invalid), maxConcurrent: "unlimited" } });
    const { skips } = plan;
    assert.deepEqual(startedBy(plan), []);
    assert.deepEqual(
      skips.map(({ reason }) => reason),
      ["PolicyInvalid"],
    );
    assert.match(skips[0]?.message ?? "", /spec.window/);
  });

  it("lets the nodes that are active finish, by the defaults", () => {
    const done = busyNode("a", "MonitoringUpdate", "MonitoringUpdate", {
      node: { bootId: "boot-2", readySince: 0 },
      status: { current_version: "1.1.0" },
    });
    const { writes } = planOf([done], { policy: edited(invalid) });
    assert.deepEqual(
      writes.map(({ node, spec }) => `${node.name} ${spec.state}`),
      ["a Idle"],
    );
  });

  it("stays frozen", () => {
    const status = { ...NO_STATUS, frozen: { id: "f1", at: "", reason: "", message: "" } };
    const read = readPolicy({ metadata, spec: { ...invalid, unfreeze: "f1" }, status });
    assert.ok(planOf([], { policy: read }).status.frozen);
  });

  it("is not read at all if its status cannot be: nobody knows who is active", () =>
    assert.throws(() => readPolicy({ metadata, spec: {}, status: { active: "x" } }), /status\.active/));
});

describe("the nodes that may be active", () => {
  for (const [maxConcurrent, total, allowed] of [
    ["1%", 0, 1],
    ["1%", 99, 1],
    ["1%", 200, 2],
    ["49%", 2, 1],
    ["50%", 1, 1],
    ["99%", 1, 1],
    ["0%", 1000, 0],
    ["100%", 1000, 1000],
    [0, 1000, 0],
    ["000003", 1000, 3],
  ] as const)
    it(`are ${allowed} of ${total} with ${maxConcurrent}`, () =>
      assert.equal(allowedActive(policy({ maxConcurrent }).maxConcurrent, total), allowed));
});
