/** A zone that is to shrink beside zones that lose pods (§2.1.4). */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { PREVIOUS, type ZoneTraits } from "../../builders/zones.ts";
import { scale } from "./adapter.ts";
import { decide, delayed, factsOf, follows, mirror, mirrorOf, whyNot } from "./scene.ts";

/** One minute after pods were created that never became ready. */
const NOW = Date.parse("2026-01-01T00:01:00Z");
const at = (minutes: number): number => Date.parse("2026-01-01T01:00:00Z") + minutes * 60_000;
const TO_3 = { t: [3, 3] } as const;

describe("while another zone", () => {
  const CASES: readonly [string, ZoneTraits | string, string | undefined][] = [
    ["is well", "nnn", undefined],
    ["has a pod that was ready and no longer is", "n?nn", undefined],
    [
      "has a pod that was ready and has crash-looped since",
      { statusReady: 2, pods: { 0: { broken: "CrashLoopBackOff", restarts: 9 } } },
      undefined,
    ],
    ["is not ready by its status, though its pods are", "nnn ready 2", undefined],
    ["lacks a pod", "nn. ready 3", "1 pod of zone-b missing"],
    ["has a pod beyond its replicas in place of one", ".nnn of 3", "1 pod of zone-b missing"],
    ["lacks a pod, which is also missing in its status", "nn. counts 2", "1 pod of zone-b missing"],
    ["has a pod that has never been ready: a revert may just have replaced it", "n!nn", "zone-b-0: not ready"],
    ["has a pod that has crash-looped since it was created", "nxnn", "zone-b-0: CrashLoopBackOff"],
    [
      "has an unschedulable pod",
      { statusReady: 2, pods: { 0: { broken: "Unschedulable" } } },
      "zone-b-0: Unschedulable",
    ],
    ["has a pod beyond its replicas that never served", "nnnn! of 3 counts 4", undefined],
    [
      "has such a pod beside one that was ready and no longer is: a fault of its own keeps nobody at their size",
      "n?nnn! of 3 counts 4",
      undefined,
    ],
    [
      "has one that terminates and never served",
      { statusReplicas: 4, statusReady: 3, pods: { 3: { ready: false, terminating: true } } },
      undefined,
    ],
    [
      "has a pod beyond its replicas that has served and crash-loops",
      { statusReplicas: 4, statusReady: 3, pods: { 3: { broken: "CrashLoopBackOff", restarts: 1 } } },
      "zone-b-3: CrashLoopBackOff",
    ],
    [
      "has pods beyond its replicas that do not terminate yet",
      "nnnn of 2 counts 4",
      "zone-b has 4 pods, 2 more than it should have",
    ],
    ["has no replicas and no pods", { replicas: 0 }, undefined],
    ["has no replicas, no pods and a new template", { replicas: 0, currentRevision: PREVIOUS }, undefined],
    ["has no replicas, and its last pod terminates", "n- of 0 counts 1 ready 1", "zone-b-0: terminating"],
    ["has outdated pods, all ready", "ooo", undefined],
    ["has a terminating pod", "nnn- ready 3", "zone-b-2: terminating"],
    ["has outdated pods and one that is not ready", "o!oo", "zone-b-0: not ready"],
    [
      "is updated, but not yet ready or recorded as current",
      { currentRevision: PREVIOUS, pods: { 0: { ready: false } } },
      "zone-b-0: not ready",
    ],
    [
      "has a spec that its controller has not observed",
      { generation: 2, observedGeneration: 1 },
      "the StatefulSet controller has not observed the latest spec of zone-b",
    ],
  ];
  for (const [name, other, why] of CASES)
    it(`${name}: ${why === undefined ? "a zone may shrink" : "it waits"}`, async () => {
      const expected = why && `zone-a waits to shrink: ${why}`;
      assert.equal(await whyNot([mirror(4), other], { ...TO_3, now: NOW }), expected);
    });

  const JUDGED: ZoneTraits = { labels: { "grafana.com/prepare-downscale": "true" } };
  const refused = "zone-a waits to shrink: statefulset zone-b has 3 non-updated replicas and 0 non-ready replicas";
  for (const [name, own, expected] of [
    ["no webhook judges it: it may shrink", {}, undefined],
    ["a webhook would refuse it: it waits", JUDGED, refused],
    [
      "its own last one is that which goes: it may shrink, so that its rollout can end",
      { ...JUDGED, pods: { 3: { revision: PREVIOUS } } },
      undefined,
    ],
    [
      "another one of its own stays: it waits",
      { ...JUDGED, pods: { 1: { revision: PREVIOUS }, 3: { revision: PREVIOUS } } },
      refused,
    ],
    [
      "the other zone may wait for this one, which is not healthy: the webhook decides",
      { ...JUDGED, statusReady: 3 },
      undefined,
    ],
  ] as const)
    it(`has outdated pods, all ready, and ${name}`, async () =>
      assert.equal(await whyNot([{ ...mirror(4), ...own }, { at: PREVIOUS }], { ...TO_3, now: NOW }), expected));

  it("terminates pods, the wait keeps its dedupKey", async () => {
    const keyBeside = async (other: string) => {
      const { holds } = await scale(factsOf([mirror(4), other], { ...TO_3, now: NOW }));
      return holds[0]?.dedupKey;
    };
    assert.ok(await keyBeside("nnn-"));
    assert.equal(await keyBeside("nnn-"), await keyBeside("nn-n"));
  });

  it("crash-loops, one waits for it; it may shrink itself by the pods that do", async () => {
    const broken = { annotations: mirrorOf("u"), statusReady: 2, pods: { 2: { broken: "CrashLoopBackOff" } } };
    const expected = "scale b to 2, OtherZoneNotReady";
    const templates = { t: [2, 2], u: [2, 2] } as const;
    assert.equal(await decide([mirror(3), broken], { templates, now: at(0) }), expected);
  });
});

describe("a zone that is to shrink to 3 replicas", () => {
  const OTHER: ZoneTraits = { replicas: 4, statusReady: 3, pods: { 3: { ready: false } } };

  /** What holds it beside a zone whose fourth pod was never ready. */
  async function reasonOf(own: ZoneTraits, now = NOW, other: ZoneTraits = {}): Promise<string | undefined> {
    const facts = factsOf(
      [
        { ...mirror(4), ...own },
        { ...OTHER, ...other },
      ],
      { templates: { t: [3, 3], u: [4, 4] }, now },
    );
    const { done, holds } = await scale(facts);
    const [first] = holds;
    assert.equal(done.includes("scale a to 3"), first === undefined);
    return first?.reason;
  }

  const CASES: readonly [string, ZoneTraits, string | undefined, now?: number][] = [
    ["its fourth pod serves", {}, "OtherZoneNotReady"],
    ["its fourth pod was never ready", OTHER, undefined],
    [
      "its fourth pod crash-loops",
      { statusReady: 3, pods: { 3: { broken: "CrashLoopBackOff", restarts: 3 } } },
      undefined,
    ],
    [
      "a container of it works",
      { statusReady: 3, pods: { 3: { broken: "CrashLoopBackOff", working: true } } },
      "OtherZoneNotReady",
    ],
    ["its fourth pod is missing", { statusReplicas: 3, statusReady: 3, pods: { 3: null } }, undefined],
    ["a pod that stays was never ready", { statusReady: 3, pods: { 0: { ready: false } } }, "OtherZoneNotReady"],
    [
      "its fourth pod, which was ready, has not been for less than 5 minutes",
      { statusReady: 3, pods: { 3: { ready: false, restarts: 0 } } },
      "OtherZoneNotReady",
      at(4.9),
    ],
    [
      "its fourth pod, which was ready, has not been for 5 minutes",
      { statusReady: 3, pods: { 3: { ready: false, restarts: 0 } } },
      undefined,
      at(5),
    ],
  ];
  for (const [name, own, expected, now] of CASES)
    it(`${name}: ${expected === undefined ? "it shrinks" : "it waits for the other zone"}`, async () =>
      assert.equal(await reasonOf(own, now), expected));

  for (const [name, other, expected] of [
    ["is to follow it", follows("a"), undefined],
    ["mirrors the same resource", { annotations: mirrorOf("t") }, undefined],
    ["mirrors another one", { annotations: mirrorOf("u") }, "OtherZoneNotReady"],
    ["keeps its size", {}, "OtherZoneNotReady"],
  ] as const)
    it(`waits for no pod that is to go as well and does not come up: the other zone ${name}`, async () => {
      const broken = { ...other, pods: { 3: { broken: "CrashLoopBackOff", working: true } } };
      // It is of the last revision, and recorded: what it waits for may be of our doing for an hour.
      assert.deepEqual(
        [await reasonOf({}, at(-1), other), await reasonOf({}, at(0), other)],
        ["OtherZoneNotReady", expected],
      );
      assert.deepEqual(
        [await reasonOf({}, NOW, broken), await reasonOf({}, at(-55), broken)],
        ["OtherZoneNotReady", expected],
      );
      const missing = { ...other, statusReplicas: 3, pods: { 3: null } };
      assert.equal(await reasonOf({}, NOW, missing), expected);
      const why = "its controller does not know";
      assert.equal(await reasonOf({}, NOW, { ...missing, statusReplicas: 4 }), "OtherZoneNotReady", why);
    });

  it("follows leaders to the end: of a chain, no zone waits for those after it", async () => {
    const zones = [
      { replicas: 3 },
      { ...OTHER, ...follows("a"), pods: {}, statusReady: 4 },
      { ...OTHER, ...follows("b") },
    ];
    assert.equal(await decide([...zones, { ...OTHER, ...follows("c") }], { now: at(0) }), "scale b to 3");
  });

  // Of two zones that may shrink to 4 and 3 replicas in one tick, that to 3 gives up the pod which ends a zone of 4.
  for (const [first, second, expected] of [
    [30, 70, "scale b to 3, write back 3, OtherZoneNotReady"],
    [70, 30, "scale a to 3, write back 3"],
  ] as const)
    it(`is judged by its own size, whatever that of the zone before it is: ${expected}`, async () => {
      const missing = { ...mirror(4), statusReplicas: 3, pods: { 3: null } };
      const answers = (pod: string): number => (pod === "a-3" ? first : pod === "b-3" ? second : 70);
      const more = { t: [3, 5], now: NOW + 86_400_000, answers } as const;
      const done = await decide([delayed(5), delayed(5), missing], more);
      assert.equal(done.replaceAll(/(?:keep|prepare)[^,]*, /g, ""), expected);
    });
});
