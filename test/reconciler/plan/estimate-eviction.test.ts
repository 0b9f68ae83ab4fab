/** Until when a pod stays is said only where it can be known. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { World } from "../../../reconciler/plan/world.ts";
import { estimateEviction, stepsFor } from "../../../reconciler/plan/estimate-eviction.ts";
import { budgetOf, OUTDATED, withBudget } from "../../cli/decide/worlds.ts";
import { gateOf } from "../gates/builders.ts";
import type { ZoneTraits } from "../builders.ts";

const MINUTE = 60_000;
const POD = { uid: "uid-ingester-zone-c-0" };

/** Zones a, b, c under a budget; the pods of a that are not ready have not been for 10 s. */
function world(traits: readonly ZoneTraits[], { forMs = 10_000, ...more }: Partial<World> & { forMs?: number } = {}) {
  const found = withBudget(traits, {});
  const zones = found.zones.map((zone) => ({
    ...zone,
    pods: zone.pods.map((pod) => (pod.ready ? pod : { ...pod, notReadySince: found.now - forMs })),
  }));
  return { ...found, zones, ...more };
}
const STARTING: ZoneTraits = { statusReady: 2, pods: { 0: { ready: false } } };
const leftOf = (found: World): number | undefined => {
  const at = estimateEviction(found, POD);
  return at === undefined ? undefined : at - found.now;
};

/** No eviction is allowed, but the rollout replaces the pod. */
const ROLLING: World = { ...world([OUTDATED, OUTDATED, OUTDATED]), budgets: [budgetOf({ maxUnavailable: 0 })] };

describe("an eviction is expected", () => {
  it("once the pod of another zone that starts is ready", () =>
    assert.equal(leftOf(world([STARTING, {}, {}])), MINUTE));
  it("once a reservation in another zone is over", () => {
    const found = world([{}, {}, {}]);
    const time = new Date(found.now - 30_000).toISOString();
    const reservations = { "ingester-zone-a-0": { uid: "uid-ingester-zone-a-0", time, by: "webhook_x" } };
    assert.equal(leftOf({ ...found, budgets: [{ ...budgetOf({}), reservations }] }), 90_000);
  });
  it("once the rollout has replaced the pod, after those of two other zones", () => {
    const left = leftOf(ROLLING);
    assert.ok(left !== undefined && left >= 2 * MINUTE, String(left));
  });
});

describe("no end is named", () => {
  for (const [what, found] of [
    ["that is now", world([{}, {}, {}])],
    ["where no pod shows how long a start takes", world([STARTING, {}, {}], { readyMs: new Map() })],
    ["where a pod takes much longer than others did", world([STARTING, {}, {}], { forMs: 3 * MINUTE })],
    [
      "where a pod cannot come up by itself",
      world([{ statusReady: 2, pods: { 0: { broken: "CrashLoopBackOff" } } }, {}, {}]),
    ],
    [
      "where a gate holds the rollout that would replace the pod",
      { ...ROLLING, gates: [gateOf({ spec: { when: ["BeforeFirstZone"] } })] },
    ],
    [
      "where the budget allows nothing at all",
      { ...world([STARTING, {}, {}]), budgets: [budgetOf({ maxUnavailable: 0 })] },
    ],
    [
      "where the budget cannot be obeyed",
      { ...world([STARTING, {}, {}]), budgets: [budgetOf({}), budgetOf({}, "other")] },
    ],
  ] as const)
    it(what, () => assert.equal(leftOf(found), undefined));

  it("once a large group has been followed for as many steps as its pods leave room for", () => {
    const large = { ...OUTDATED, replicas: 300, statusReady: 300 };
    const found = { ...world([large, large, large]), budgets: [budgetOf({ maxUnavailable: 0 })] };
    assert.equal(found.zones.flatMap(({ pods }) => pods).length, 900);
    let reads = 0;
    // Each read asks all budgets of the namespace about the pod.
    const budgets = new Proxy(found.budgets, {
      get(target, key, self): unknown {
        if (key === "find") reads++;
        return Reflect.get(target, key, self);
      },
    });
    assert.equal(leftOf({ ...found, budgets }), undefined);
    assert.ok(reads > 0 && reads <= 10 * stepsFor(900), `${reads} reads at the budgets`);
  });
  it("after 2000 steps in a small group and 44 in one of 900 pods, but never without a step", () =>
    assert.deepEqual([0, 9, 20, 240, 900, 100_000].map(stepsFor), [2000, 2000, 2000, 166, 44, 1]));
});
