/** Groups that nobody handles are held by name, and cost no call: those without a name, and those of too many zones. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { MAX_ZONES } from "../../../reconciler/model/refused-group.ts";
import { isFailure } from "../../../reconciler/model/outcome.ts";
import { decideByStatus, decideRollout } from "../../../reconciler/rollout/decide-rollout.ts";
import { decideScaling } from "../../../reconciler/scaling/decide-scaling.ts";
import { group } from "../builders.ts";
import { deploy, setStage, tickOnce } from "../stage.ts";

const outdated = (count: number) =>
  group(...Array.from({ length: count }, (_, i) => ({ name: `zone-${i}`, replicas: 1, at: "prev" })));

describe("StatefulSets whose label rollout-group is empty", () => {
  const unnamed = group({ group: "", at: "prev" }, { group: "", at: "prev" });
  const message = /^ingester-zone-a: its label rollout-group is empty/;

  it("are no group: they are neither rolled out nor scaled, and each decision says so", () => {
    const decision = decideRollout(unnamed);
    assert.ok(decision?.action === "hold");
    assert.equal(decision.reason, "GroupNameEmpty");
    assert.match(decision.message, message);
    assert.deepEqual(
      decision.objects.map(({ name }) => name),
      ["ingester-zone-a", "ingester-zone-b"],
    );
    assert.deepEqual(decideByStatus(unnamed.zones), decision);
    const zones = unnamed.zones.map((zone) => ({ ...zone, scaling: { ...zone.scaling, leader: "none" } }));
    const snapshot = { zones, tracked: new Map(), now: 0, facts: new Map(), clusterDomain: "x" };
    assert.deepEqual(decideScaling(snapshot), { next: undefined, scalingHolds: [] });
  });

  it("lose no pod in a tick, which fails by name", async (t) => {
    const stage = await setStage();
    t.after(() => stage.close());
    deploy(stage, "x:1", { labels: { "rollout-group": "" } });
    const { cluster, calls } = stage.connect();
    const { outcomes } = await tickOnce(stage, cluster, { takeResync: () => true });
    assert.deepEqual(
      outcomes.map((outcome) => [outcome.state === "held" && outcome.hold.reason, isFailure(outcome)]),
      [["GroupNameEmpty", true]],
    );
    assert.ok(
      calls.every((call) => call === "GET apps/v1/statefulsets collection"),
      calls.join(),
    );
  });
});

describe(`a group of more than ${MAX_ZONES} zones`, () => {
  it("is neither rolled out nor scaled, and says so", () => {
    const large = outdated(MAX_ZONES + 1);
    const decision = decideRollout(large);
    assert.ok(decision?.action === "hold");
    assert.equal(decision.reason, "TooManyZones");
    assert.match(decision.message, /^group ingester has 33 zones, more than 32: it is neither rolled out nor scaled$/);
    assert.deepEqual(decideByStatus(large.zones), decision);
    const zones = large.zones.map((zone) => ({ ...zone, scaling: { ...zone.scaling, leader: "none" } }));
    const snapshot = { zones, tracked: new Map(), now: 0, facts: new Map(), clusterDomain: "x" };
    assert.deepEqual(decideScaling(snapshot), { next: undefined, scalingHolds: [] });
  });

  it("is one zone too large: with a zone less it is rolled out", () => {
    assert.equal(decideRollout(outdated(MAX_ZONES))?.action, "deletePods");
  });

  it("costs a tick no call, and fails", async (t) => {
    const stage = await setStage();
    t.after(() => stage.close());
    deploy(stage, "x:1", { zones: Array.from({ length: MAX_ZONES + 1 }, (_, i) => String(i)), replicas: 0 });
    const { cluster, calls } = stage.connect();
    const { outcomes } = await tickOnce(stage, cluster, { takeResync: () => true });
    assert.deepEqual(
      outcomes.map((outcome) => [outcome.state, isFailure(outcome)]),
      [["held", true]],
    );
    assert.ok(
      calls.every((call) => call === "GET apps/v1/statefulsets collection"),
      calls.join(),
    );
  });
});
