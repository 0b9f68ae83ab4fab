import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { decideRollout } from "../../../reconciler/rollout/decide-rollout.ts";
import { countRemaining, listRemaining } from "../../../reconciler/rollout/decide-rollout.ts";
import { group, LAST, PREVIOUS, type ZoneTraits } from "../builders.ts";

const OLD: ZoneTraits = { at: PREVIOUS, updateRevision: LAST };
const planned = (...traits: readonly ZoneTraits[]): string[] =>
  listRemaining(group(...traits).zones).map(
    ({ zone, count, pods }) => `${zone.at(-1)} ${count}: ${pods.map((pod) => pod.slice(-3)).join(" ")}`,
  );

describe("what is left of a rollout", () => {
  const TABLE: readonly (readonly [name: string, expected: readonly string[], traits: readonly ZoneTraits[]])[] = [
    ["nothing, of zones that are updated", [], [{}, {}]],
    ["the zones in the order of names", ["a 3: a-0 a-1 a-2", "b 3: b-0 b-1 b-2"], [OLD, OLD]],
    ["the unhealthy zone first", ["b 3: b-0 b-1 b-2", "a 3: a-0 a-1 a-2"], [OLD, { ...OLD, statusReady: 2 }]],
    ["no paused zone", ["b 3: b-0 b-1 b-2"], [{ ...OLD, annotations: { "grafana.com/rollout-paused": "true" } }, OLD]],
    [
      "pods that serve nothing first, and pods that are not ready before those that are",
      ["a 4: a-2 a-3 a-1 a-0"],
      [
        {
          ...OLD,
          replicas: 4,
          pods: { 1: { ready: false, restarts: 0 }, 2: { broken: "CrashLoopBackOff" }, 3: { ready: false } },
        },
      ],
    ],
    ["a zone that only has to be recorded", ["a 0: "], [{ currentRevision: PREVIOUS }]],
  ];
  for (const [name, expected, traits] of TABLE) it(`has ${name}`, () => assert.deepEqual(planned(...traits), expected));

  it("begins with what the rollout does next", () => {
    for (const pods of [{ 0: { revision: LAST } }, { 1: { broken: "CrashLoopBackOff", ready: false } }]) {
      const next = group({ ...OLD, pods }, OLD);
      const decision = decideRollout(next);
      const [first] = listRemaining(next.zones);
      assert.ok(decision?.action === "deletePods");
      assert.equal(decision.zone.name, first?.zone);
      const names = decision.pods.map(({ name }) => name);
      assert.deepEqual(names, first?.pods.slice(0, names.length));
    }
  });

  it("shows how long half of the ready pods took", () => {
    const { zones } = group(OLD);
    const times = [10_000, 90_000, 20_000];
    const timed = zones.map((zone) => ({
      ...zone,
      pods: zone.pods.map((pod, i) => ({ ...pod, readyAfterMs: times[i] })),
    }));
    assert.equal(listRemaining(timed)[0]?.msPerPod, 20_000);
  });

  it("does not take the time of a disruption for that of a start", () => {
    const { zones } = group(OLD);
    const days = zones.map((zone) => ({
      ...zone,
      pods: zone.pods.map((pod) => ({ ...pod, readyAfterMs: 10 * 86_400_000 })),
    }));
    assert.equal(listRemaining(days)[0]?.msPerPod, undefined);
  });

  it("names 10 pods of a zone at most", () =>
    assert.equal(listRemaining(group({ ...OLD, replicas: 50 }).zones)[0]?.pods.length, 10));

  it("has the same counts by status alone", () => {
    const { zones } = group(OLD, {}, { ...OLD, replicas: 5 });
    assert.deepEqual(
      countRemaining(zones).map(({ zone, count }) => [zone.at(-1), count]),
      [
        ["a", 3],
        ["c", 5],
      ],
    );
  });
});
