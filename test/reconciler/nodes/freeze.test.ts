/** A suspected bad update stops the campaign until a person goes on (§17.5). */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { PolicyStatus } from "../../../reconciler/nodes/policy.ts";
import { at, entry, startedBy } from "./fixture.ts";
import { describePlan, passOf, table } from "./adapter.ts";

const frozen = { frozen: { id: "f1", at: at(-1), reason: "RebootTimeout", message: "a" } };
const failed = [
  { node: "a", startedAt: entry("a").startedAt, to: "1.1.0", at: at(-1), reason: "RebootTimeout", message: "" },
];

table(
  "a failure",
  `
  after a reboot freezes at once, and starts nothing in that pass | a R/E newboot Draining, b {maxConcurrent: 2}
    | wants a I; slots a Recovering ends UpdateFailed; deferred a UpdateFailed 0; failed a UpdateFailed; frozen UpdateFailed; skips b Frozen
  after a reboot reboots no other node in that pass | a R/E newboot Draining, b S/S Holding {maxConcurrent: 2}
    | wants a I; slots a Recovering ends UpdateFailed, b Holding; deferred a UpdateFailed 0; failed a UpdateFailed; frozen UpdateFailed
  before the reboot does not freeze: that node waits | a S/E Staging
    | wants a I; slots a Recovering ends UpdateFailed; deferred a UpdateFailed 0
  of the call to reboot does not freeze | a R/E Draining
    | wants a I; slots a Recovering ends UpdateFailed; deferred a UpdateFailed 0
  of fewer than \`maxFailed\` does not freeze | a R/E newboot Draining {maxFailed: 2}
    | wants a I; slots a Recovering ends UpdateFailed; deferred a UpdateFailed 0; failed a UpdateFailed
`,
);

table(
  "while a policy is frozen",
  `
  nothing starts, and no staged node reboots | a S/S Holding fresh, b {maxConcurrent: 5}
    | slots a Holding; frozen RebootTimeout; skips b Frozen
  a node that is being drained is put back into service, and is tried again after it | a R/S Draining fresh
    | wants a I; slots a Draining ends Frozen; deferred a Frozen 0; frozen RebootTimeout
  one that is not Ready is left cordoned | a R/S Draining fresh notready | slots a Draining; frozen RebootTimeout
  one whose reboot is announced as well | a R/S Draining fresh announced | slots a Rebooting; frozen RebootTimeout
  nodes that have rebooted finish | a R/R Returning fresh newboot
    | wants a M; slots a Returning; frozen RebootTimeout
`,
  { status: frozen },
);

describe("a freeze", () => {
  it("says which node and why, and its id", () =>
    assert.deepEqual(passOf({ nodes: "a S/I Staging late notready" }).status.frozen, {
      id: "a-20260601T120000Z",
      at: at(0),
      reason: "StagingTimeout",
      message: "a: a was in phase Staging for 30m",
    }));

  it("comes with as many failures as configured", () => {
    const nodes = "a R/E newboot Draining";
    const before = [{ ...failed[0], node: "z" }] as typeof failed;
    assert.match(
      describePlan(passOf({ nodes, spec: { maxFailed: 2 }, status: { failed: before } })),
      /frozen UpdateFailed/,
    );
  });

  it("counts an attempt once, however often the step is repeated", () => {
    const first = passOf({ nodes: "a R/E newboot Draining", spec: { maxFailed: 2 } }).status;
    assert.equal(passOf({ nodes: "a R/E newboot", spec: { maxFailed: 2 }, status: first }).status.failed.length, 1);
  });

  it("names its cause, over and over the same, and lets the node finish once it is Ready", () => {
    const late = [entry("a", { phase: "Returning", since: at(-3600_000), waitsFor: "the node is not Ready" })];
    let { status } = passOf({ nodes: "a R/R newboot notready cordoned", status: { active: late } });
    assert.equal(status.frozen?.message, "a: a was in phase Returning for 15m: the node is not Ready");
    for (let i = 0; i < 3; i++) {
      ({ status } = passOf({ nodes: "a R/R newboot notready cordoned", status }));
      assert.equal(status.active[0]?.waitsFor, "the node is not Ready");
    }
    assert.equal(status.failed.length, 1);
    assert.equal(
      describePlan(passOf({ nodes: "a R/R newboot cordoned", status })),
      "wants a M; slots a Returning; failed a ReturnTimeout; frozen ReturnTimeout",
    );
  });
});

const stuck: Partial<PolicyStatus> = {
  ...frozen,
  failed,
  active: [entry("a", { phase: "Rebooting", since: at(-3600_000) })],
};
const gone = "a R/S announced notready cordoned";

for (const unfreeze of [undefined, "", "f0", "true"])
  it(`a policy stays frozen with unfreeze: ${unfreeze}`, () => {
    const spec = unfreeze === undefined ? {} : { unfreeze };
    assert.ok(passOf({ nodes: gone, spec, status: stuck }).status.frozen);
  });

it("a policy does not go on by an id that was used before", () => {
  const again = { ...stuck, frozen: { ...frozen.frozen, id: "f2" } };
  assert.ok(passOf({ nodes: gone, spec: { unfreeze: "f1" }, status: again }).status.frozen);
});

table(
  "once a person has named the freeze",
  `
  others start, and the stuck node has no slot any more | a R/S announced notready cordoned, b {unfreeze: f1}
    | wants b S, a I; slots b Starting; deferred a ReleasedByHand 1; skips a Recovering
  a released node that is cordoned by us and Ready takes a slot | a R/R newboot cordoned, b, c, d
    | wants b S, a I; slots b Starting; deferred a ReleasedByHand 1; skips a Recovering, c LimitReached, d LimitReached
  a released node that serves takes a slot until its agent has reported | a R/R newboot, b, c, d
    | wants b S, a I; slots b Starting; deferred a ReleasedByHand 1; skips a Recovering, c LimitReached, d LimitReached
  a released node that is not Ready takes a slot | a R/S announced notready cordoned, b, c, d
    | wants b S, a I; slots b Starting; deferred a ReleasedByHand 1; skips a Recovering, c LimitReached, d LimitReached
  a released node that is at rest takes none | a updated, b, c, d
    | wants b S, c S; slots b Starting, c Starting; deferred a ReleasedByHand 1; skips d LimitReached
  also if it is not Ready | a updated notready, b, c, d
    | wants b S, c S; slots b Starting, c Starting; deferred a ReleasedByHand 1; skips d LimitReached
  one that is cordoned by us and Ready takes the only slot | a R/R newboot cordoned, b, c {unfreeze: f1}
    | wants a I; deferred a ReleasedByHand 1; skips a Recovering, b LimitReached, c LimitReached
`,
  { spec: { unfreeze: "f1", maxConcurrent: 2 }, status: stuck },
);

it("a released node that serves takes no slot any more if its agent does not report in time, and those that wait say for whom", () => {
  const after = (ms: number) =>
    passOf({
      nodes: "a R/R newboot, b",
      status: { deferred: [{ node: "a", count: 1, at: at(-ms), reason: "ReleasedByHand" }] },
    });
  assert.deepEqual(startedBy(after(301_000)), ["b"]);
  assert.match(after(299_000).status.waiting.at(-1)?.message ?? "", /; a counts until it is back in service$/);
});
