/** Groups that nobody handles are held by name, and cost no call: those without a name, and those of too many zones. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { MAX_ZONES } from "../../../reconciler/model/refused-group.ts";
import { isFailure } from "../../../reconciler/model/outcome.ts";
import { decideScaling } from "../../../reconciler/scaling/decide-scaling.ts";
import { type GroupObjects, objectsOf } from "../../builders/groups.ts";
import { OLD } from "../../builders/zones.ts";
import { decide, decideNext, decideWithoutPods, readGroup } from "../rollout/adapter.ts";
import { deploy, setStage, tickOnce } from "../stage.ts";

const outdated = (count: number) =>
  objectsOf(Array.from({ length: count }, (_, i) => ({ ...OLD, name: `zone-${i}`, replicas: 1 })));
const names = Array.from({ length: MAX_ZONES + 1 }, (_, i) => String(i));

type Refused = readonly [what: string, GroupObjects, message: RegExp, deployed: Parameters<typeof deploy>[2]];

const REFUSED: readonly Refused[] = [
  [
    "without a name",
    objectsOf([
      { ...OLD, group: "" },
      { ...OLD, group: "" },
    ]),
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
      const decision = decideNext(refused);
      assert.ok(decision?.action === "hold");
      assert.match(`${decision.reason} ${decision.message}`, message);
      assert.partialDeepStrictEqual(decideWithoutPods(refused), { ...decision, objects: [] });
      const zones = readGroup(refused).zones.map((zone) => ({ ...zone, scaling: { ...zone.scaling, leader: "none" } }));
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
  assert.equal(decide(outdated(MAX_ZONES)), "delete zone-0-0"));
