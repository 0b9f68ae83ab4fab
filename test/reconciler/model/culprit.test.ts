/** The pod that a hold waits for, and from when on somebody has to help it (§11.5). */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { findCulprit, worstOf } from "../../../reconciler/model/culprit.ts";
import { group, objectsOf } from "../../builders/groups.ts";
import { CREATED, LAST, OLD, type PodTraits, PREVIOUS, type ZoneTraits } from "../../builders/zones.ts";
import { decideNext } from "../rollout/adapter.ts";

/** One with restarts was ready then. */
const FELL = CREATED + 3_600_000;

const FIRST = { revision: LAST, ready: false } as const;
const PULLING: PodTraits = { ...FIRST, broken: "ImagePullBackOff" };
const PAUSED = { "grafana.com/rollout-paused": "true" };
const withPod = (pod: PodTraits): ZoneTraits => ({ ...OLD, statusReady: 2, pods: { 0: pod } });

describe("somebody has to help", () => {
  for (const [what, traits, afterMs, from] of [
    ["a pod whose image cannot be pulled, and no other has it", [withPod(PULLING), OLD], 60_000, CREATED],
    [
      "one whose container cannot be created",
      [withPod({ ...FIRST, broken: "CreateContainerError" }), OLD],
      60_000,
      CREATED,
    ],
    ["a pod whose image works in another zone", [withPod(PULLING), {}], 300_000, CREATED],
    [
      "a pod whose image works beside it",
      [{ ...withPod(PULLING), pods: { 0: PULLING, 1: { revision: LAST } } }],
      300_000,
      CREATED,
    ],
    ["a pod that crashes", [withPod({ ...FIRST, broken: "CrashLoopBackOff" }), OLD], 300_000, CREATED],
    ["a pod that has restarted 3 times", [withPod({ ...FIRST, restarts: 3 }), OLD], 300_000, FELL],
    ["a pod that should be gone", [withPod({ ...FIRST, terminating: true }), OLD], 300_000, CREATED],
    ["not a pod that starts", [withPod(FIRST), OLD], undefined, CREATED],
    ["not a pod that has restarted twice", [withPod({ ...FIRST, restarts: 2 }), OLD], undefined, CREATED],
  ] as const)
    it(`${what}${afterMs === undefined ? "" : ` after ${afterMs / 1000} s`}`, () => {
      const { zones } = group(...traits);
      const [zone] = zones;
      const { name, needsHelpAt } = zone ? findCulprit(zone, zones) : assert.fail();
      assert.deepEqual([name, needsHelpAt], ["ingester-zone-a-0", afterMs === undefined ? undefined : from + afterMs]);
    });
});

it("the worst is the one that needs help first, then one that is broken", () => {
  const pod = (name: string, more: object = {}) => ({ kind: "Pod", name, ...more }) as const;
  const all = [
    pod("starts"),
    pod("broken", { isBroken: true }),
    pod("later", { needsHelpAt: 2 }),
    pod("now", { needsHelpAt: 1 }),
  ];
  assert.equal(worstOf(all).culprit?.name, "now");
  assert.equal(worstOf(all.slice(0, 2)).culprit?.name, "broken");
  assert.equal(worstOf([]).culprit, undefined);
});

describe("a hold names the cause first, then the rule, and the pod that it waits for", () => {
  for (const [reason, traits, message] of [
    [
      "MaxUnavailableReached",
      [{ ...withPod(PULLING), statusReady: 1, pods: { 0: PULLING, 1: FIRST } }, OLD],
      /^ingester-zone-a-0: ImagePullBackOff i, ingester-zone-a-1: not ready; at most 2 of ingester-zone-a may be/,
    ],
    [
      "ZoneNotReady",
      [{ currentRevision: PREVIOUS, statusReady: 2, pods: { 0: PULLING } }],
      /^ingester-zone-a-0: ImagePullBackOff i; /,
    ],
    [
      "OtherZoneNotReady",
      [{ annotations: PAUSED, statusReady: 2, pods: { 0: { ready: false, working: true } } }, OLD],
      /^ingester-zone-a-0: not ready; ingester-zone-b waits$/,
    ],
    [
      "MultipleZonesNotReady",
      [
        { statusReady: 2, pods: { 0: PULLING } },
        { statusReady: 2, pods: { 1: { ready: false } } },
      ],
      /^ingester-zone-a-0: ImagePullBackOff i; ingester-zone-b-1: not ready; pods of 2 zones are not ready$/,
    ],
  ] as const)
    it(reason, () => {
      const decision = decideNext(objectsOf(traits));
      assert.ok(decision?.action === "hold");
      assert.deepEqual([decision.reason, decision.culprit?.name], [reason, "ingester-zone-a-0"]);
      assert.match(decision.message, message);
    });
});
