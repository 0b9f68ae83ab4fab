/** What agents report is their word: it must not hurt more than their own node. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { failStatus } from "../../../reconciler/nodes/decide-agent.ts";
import { readShadow } from "../../../reconciler/nodes/node.ts";
import { shadowStatus, STATES } from "../../../reconciler/nodes/shadow.ts";
import { planOf } from "./adapter.ts";
import { at, busyNode, entry, node, policy, startedBy, status } from "./fixture.ts";

const LONG = "x".repeat(1_000_000);

describe("an agent that lies", () => {
  it("makes no status too large to be stored by its reason of a failure", () => {
    const failed = busyNode("a", "RebootedIntoUpdate", "ErrorReset", {
      node: { bootId: "boot-2" },
      status: { failure_reason: LONG },
    });
    const plan = planOf([failed], { policy: policy({}, { active: [entry("a")] }) });
    assert.ok(plan.status.frozen);
    assert.ok(JSON.stringify(plan.status).length < 10_000, `${JSON.stringify(plan.status).length} bytes`);
  });

  it("is not believed with texts that no host has", () => {
    assert.equal(shadowStatus.safeParse(status({ target_version: `1.0.0+${LONG}` })).success, false);
    assert.equal(shadowStatus.safeParse(status({ failure_reason: LONG })).success, false);
    const stored = readShadow({
      metadata: { name: "brs-a" },
      spec: { state: "Idle" },
      status: status({ current_version: LONG }),
    });
    assert.match(stored.problem ?? "", /current_version/);
  });

  it("takes one slot at most, whatever states it claims, and stops other nodes only by a failure after its reboot", () => {
    for (const wanted of STATES)
      for (const claimed of STATES) {
        const liar = busyNode("a", wanted, claimed);
        const plan = planOf([liar, node("b")], {
          policy: policy({ maxConcurrent: 2 }, { active: [entry("a", { since: at(0) })] }),
        });
        const freezes = wanted === "MonitoringUpdate" && claimed === "ErrorReset";
        const begun = startedBy(plan);
        assert.deepEqual(
          [plan.status.frozen !== undefined, begun.includes("b")],
          [freezes, !freezes],
          `${wanted} ${claimed}`,
        );
      }
  });
});

describe("an honest agent", () => {
  it("can report a failure after the largest count of failures", () => {
    const host = { version: "1.0.0", bootId: "b" };
    const failed = failStatus({ now: 0, host }, status({ crash_count: 4_294_967_295 }), "again");
    assert.ok(shadowStatus.safeParse(failed).success);
  });
});

it("four thousand nodes whose updates failed for a long reason keep the status small enough to be stored", () => {
  const names = Array.from({ length: 4000 }, (_, i) => `node-${i}.${"n".repeat(40)}.example.internal`);
  const failed = { failure_reason: "x".repeat(4000) };
  const nodes = names.map((name) => busyNode(name, "Idle", "Idle", { status: failed }));
  const active = names.map((name) => entry(name, { phase: "Recovering", since: at(0) }));
  const { status: after } = planOf(nodes, { policy: policy({ maxConcurrent: 0 }, { active }) });
  assert.equal(after.deferred.length, 4000);
  assert.ok(JSON.stringify(after).length < 1_500_000, `${JSON.stringify(after).length} bytes`);
});

it("a thousand nodes that are held, and then drained, keep the status small enough to be stored", () => {
  const workloads = Array.from({ length: 110 }, (_, i) => ({
    kind: "ReplicaSet",
    namespace: "n".repeat(40),
    name: `${"x".repeat(50)}${i}`,
    uid: "u".repeat(36),
    ready: 1,
  }));
  const names = Array.from({ length: 1000 }, (_, i) => `node-${i}.${"n".repeat(40)}.example.internal`);
  const nodes = names.map((name) => busyNode(name, "StagedAndPerformedUpdate", "StagedAndPerformedUpdate"));
  const active = names.map((name) => entry(name, { phase: "Holding", since: at(0) }));
  const stored = policy({ maxConcurrent: "unlimited" }, { active });
  for (const obstacle of ["shop/db: budget ".repeat(100), undefined]) {
    const readings = new Map(names.map((name) => [name, { workloads, obstacle }]));
    const { status: after } = planOf(nodes, { policy: stored, readings });
    assert.equal(after.active.length, 1000);
    assert.ok(JSON.stringify(after).length < 1_200_000, `${JSON.stringify(after).length} bytes`);
    if (obstacle === undefined) assert.ok(after.active.every((one) => one.workloads?.length === 3));
  }
});
