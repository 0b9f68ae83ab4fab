/** Groups that nobody handles are held by name, and cost no call: those without a name, and those of too many zones. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { MAX_ZONES } from "../../../reconciler/model/refused-group.ts";
import { isFailure } from "../../../reconciler/model/outcome.ts";
import type { GroupSnapshot } from "../../../reconciler/model/zone.ts";
import { decideByStatus, decideRollout } from "../../../reconciler/rollout/decide-rollout.ts";
import { decideScaling } from "../../../reconciler/scaling/decide-scaling.ts";
import { group } from "../builders.ts";
import { deploy, setStage, tickOnce } from "../stage.ts";

const outdated = (count: number) =>
  group(...Array.from({ length: count }, (_, i) => ({ name: `zone-${i}`, replicas: 1, at: "prev" })));
const names = Array.from({ length: MAX_ZONES + 1 }, (_, i) => String(i));

type Refused = readonly [what: string, GroupSnapshot, message: RegExp, deployed: Parameters<typeof deploy>[2]];

const REFUSED: readonly Refused[] = [
  [
    "without a name",
    group({ group: "", at: "prev" }, { group: "", at: "prev" }),
    /^GroupNameEmpty ingester-zone-a: its label rollout-group is empty/,
    { labels: { "rollout-group": "" } },
  ],
  [
    `of more than ${MAX_ZONES} zones`,
    outdated(MAX_ZONES + 1),
    /^TooManyZones group ingester has 33 zones, more than 32: it is neither rolled out nor scaled$/,
    { zones: names, replicas: 0 },
  ],
];

for (const [what, refused, message, deployed] of REFUSED)
  describe(`a group ${what}`, () => {
    it("is neither rolled out nor scaled, and each decision says so", () => {
      const decision = decideRollout(refused);
      assert.ok(decision?.action === "hold");
      assert.match(`${decision.reason} ${decision.message}`, message);
      assert.deepEqual(decideByStatus(refused.zones), decision);
      const zones = refused.zones.map((zone) => ({ ...zone, scaling: { ...zone.scaling, leader: "none" } }));
      const snapshot = { zones, tracked: new Map(), now: 0, facts: new Map(), clusterDomain: "x" };
      assert.deepEqual(decideScaling(snapshot), { next: undefined, scalingHolds: [] });
    });

    it("costs a tick no call but the list of all, and fails", async (t) => {
      const stage = await setStage();
      t.after(() => stage.close());
      deploy(stage, "x:1", deployed);
      const { cluster, calls } = stage.connect();
      const { outcomes } = await tickOnce(stage, cluster, { takeResync: () => true });
      assert.deepEqual(
        outcomes.map((outcome) => [outcome.state, isFailure(outcome)]),
        [["held", true]],
      );
      assert.deepEqual(new Set(calls), new Set(["GET apps/v1/statefulsets collection"]));
    });
  });

it("a group of as many zones as are handled is rolled out", () =>
  assert.equal(decideRollout(outdated(MAX_ZONES))?.action, "deletePods"));
