/** Whether the other zones of a group allow a downscale (§4.7). */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { MAX_ZONES } from "../../../reconciler/model/refused-group.ts";
import { leftBehind, PREVIOUS, type ZoneTraits } from "../../builders/zones.ts";
import { ago, explain, factsOf, judged, LAST, type More, NOW, shrink } from "./scene.ts";

const FOUR: ZoneTraits = { replicas: 4 };
const counts = (outdated: number, unready: number): string =>
  `OtherZoneNotReady: statefulset zone-b has ${outdated} non-updated replicas and ${unready} non-ready replicas`;

describe("waiting for other zones' health", () => {
  const SHRUNK = { replicas: 2, statusReplicas: 3, pods: { 2: {} } };
  const ALL = "OtherZoneNotReady: statefulset zone-b has";
  const CASES: readonly [string, ZoneTraits | string, string | undefined][] = [
    ["all pods updated and ready", {}, undefined],
    ["no replicas and no pods", { replicas: 0 }, undefined],
    ["no replicas, and a new template", { replicas: 0, at: PREVIOUS }, undefined],
    [
      "no replicas, and its last pod terminates",
      { replicas: 0, statusReplicas: 1, pods: { 0: { terminating: true } } },
      `${ALL} 0 replicas, and zone-b-0 is still terminating`,
    ],
    [
      "a status that is older than its spec: it may be about to roll out",
      { generation: 2, observedGeneration: 1 },
      `${ALL} 3 replicas, which the StatefulSet controller has not observed yet`,
    ],
    ["outdated pods", { at: PREVIOUS }, counts(3, 0)],
    ["a pod that is not ready", { pods: { 1: { ready: false } } }, counts(0, 1)],
    ["outdated pods and one that is not ready", "oo!o", counts(3, 1)],
    ["a pod that is terminating", { pods: { 1: { terminating: true } } }, counts(0, 1)],
    ["a pod that is missing", { pods: { 2: null } }, counts(0, 1)],
    [
      "a pod beyond its replicas, which the controller has not observed",
      { ...SHRUNK, generation: 2, observedGeneration: 1 },
      `${ALL} 2 replicas, which the StatefulSet controller has not observed yet; zone-b-2 is still running`,
    ],
    ["a pod beyond its replicas that still runs", SHRUNK, `${ALL} 2 replicas, and zone-b-2 is still running`],
    [
      "a pod beyond its replicas that terminates",
      { ...SHRUNK, pods: { 2: { terminating: true } } },
      `${ALL} 2 replicas, and zone-b-2 is still terminating`,
    ],
    [
      "such a pod that its status counts no longer",
      { ...SHRUNK, statusReplicas: 2, pods: { 2: { terminating: true } } },
      `${ALL} 2 replicas, and zone-b-2 is still terminating`,
    ],
    [
      "many pods beyond its replicas",
      { ...SHRUNK, statusReplicas: 15, pods: Object.fromEntries(Array.from({ length: 13 }, (_, i) => [i + 2, {}])) },
      `${ALL} 2 replicas, and ${Array.from({ length: 10 }, (_, i) => `zone-b-${i + 2}`).join(", ")} and 3 more are still running`,
    ],
    [
      "a pod beyond its replicas that never served",
      { statusReplicas: 4, statusReady: 3, pods: { 3: { ready: false } } },
      undefined,
    ],
    [
      "a pod beyond its replicas that has served",
      { statusReplicas: 4, statusReady: 3, pods: { 3: { ready: false, restarts: 0 } } },
      `${ALL} 3 replicas, and zone-b-3 is still running`,
    ],
    [
      "a pod that cannot be made again: the status counts one less",
      { statusReplicas: 2, pods: { 2: null } },
      counts(1, 1),
    ],
  ];
  for (const [name, other, why = "Prepared"] of CASES)
    it(`${name}: ${why}`, async () => {
      const decision = await shrink(3, [FOUR, other]);
      assert.equal(explain(decision), why);
      assert.deepEqual(decision.called, why === "Prepared" ? ["POST ingester-zone-a-3"] : []);
    });

  const prev = { revision: PREVIOUS };
  const surplus = { replicas: 5, pods: { 3: prev, 4: prev } };
  const OUTDATED = { at: PREVIOUS };
  for (const [name, own, other, why] of [
    ["outdated pods of others are not waited for", surplus, OUTDATED, "Prepared"],
    ["those that are not ready are", surplus, "oo!o", counts(3, 1)],
    ["but not if another one stays", { ...surplus, pods: { 2: prev, 3: prev, 4: prev } }, OUTDATED, counts(3, 0)],
    ["but not if it has none", { ...surplus, pods: {} }, OUTDATED, counts(3, 0)],
    [
      "but not while it is paused: nobody waits for it",
      { ...surplus, annotations: { "grafana.com/rollout-paused": "true" } },
      OUTDATED,
      counts(3, 0),
    ],
  ] as const)
    it(`once the outdated pods of the zone are those that it loses: ${name}: ${why}`, async () =>
      assert.equal(explain(await shrink(3, [own, other])), why));

  const OWN: readonly [string, to: number, zones: readonly (ZoneTraits | string)[], why: string][] = [
    ["the only zone of a group waits for nobody, not for its own pods either", 2, ["nn!n"], "Prepared"],
    ["it may go to no pods", 0, ["nnn"], "Prepared"],
    ["one of two zones may, too", 0, ["nnn", "nnn"], "Prepared"],
    ["its own pods do not count", 2, ["n!n!n", "nnn"], "Prepared"],
    ["pods that serve nothing go, whatever the others wait for", 1, ["nn!n!", "nn!n!"], "Prepared"],
    ["but not beside one that serves", 0, ["nn!n!", "nn!n!"], counts(0, 2)],
  ];
  for (const [name, to, zones, why] of OWN)
    it(`${name}: ${why}`, async () => assert.equal(explain(await shrink(to, zones)), why));
});

/** When other zones were last scaled down, and how long others are to wait for them. */
type Times = readonly (readonly [time: string | undefined, label: string | undefined])[];

/** The zones, and where the times are recorded in this mode; the zone that shrinks has just been scaled down. */
function timed(times: Times, isTracked: boolean): readonly [ZoneTraits[], More] {
  const labels = (text: string | undefined) =>
    text === undefined ? {} : { "grafana.com/min-time-between-zones-downscale": text };
  const annotations = (time: string | undefined) => (time === undefined || isTracked ? {} : { [LAST]: time });
  const zones = [[ago(0), "12h"] as const, ...times].map(([time, label]) => ({
    labels: labels(label),
    annotations: annotations(time),
  }));
  const entries = times.map(([time], i) => [
    `ingester-zone-${"bcd".charAt(i)}`,
    JSON.stringify({ lastDownscaled: time }),
  ]);
  const tracker = Object.fromEntries(entries.filter((_, i) => times[i]?.[0] !== undefined)) as Record<string, string>;
  return [zones, isTracked ? { isTracked, tracker } : {}];
}

for (const isTracked of [false, true])
  describe(`waiting for other zones' time, ${isTracked ? "by the zone tracker" : "by annotations"}`, () => {
    const wait = "MinTimeNotElapsed";
    const unreadable = isTracked
      ? "DownscaleUnreadable: parsing parsing downscale timestamps from the zone ConfigMap failed."
      : "DownscaleUnreadable: parsing downscale annotations failed.";
    const CASES: readonly [string, Times, string][] = [
      ["no zone was scaled down", [[undefined, "soon"]], "Prepared"],
      ["it was long ago", [[ago(13), "12h"]], "Prepared"],
      ["its time is over this moment", [[ago(12), "12h"]], "Prepared"],
      ["one second is missing", [[ago(12 - 1 / 3600), "12h"]], wait],
      ["its clock is ahead", [[ago(-24), "1s"]], wait],
      ["it is not labelled", [[ago(0), undefined]], "Prepared"],
      ["it is labelled to wait for less than this one is", [[ago(2), "1h"]], "Prepared"],
      ["its label is not a duration", [[ago(0), "1d"]], unreadable],
      ["its time is not a time", [["2026-01-01 12:00:00", undefined]], unreadable],
      [
        "the second zone",
        [
          [undefined, "1h"],
          [ago(0.5), "1h"],
        ],
        wait,
      ],
    ];
    for (const [name, times, expected] of CASES)
      it(`when ${name}: ${expected}`, async () => {
        const decision = await shrink(2, ...timed(times, isTracked));
        assert.ok(explain(decision)?.startsWith(expected), decision.message);
        assert.equal(decision.called.length, expected === "Prepared" ? 1 : 0);
      });

    it("names the zone, the time and the duration", async () => {
      const decision = await shrink(2, ...timed([["2026-01-02T13:00:00+02:00", "12h1m"]], isTracked));
      assert.equal(
        decision.message,
        "downscale of statefulsets/ingester-zone-a in test from 3 to 2 replicas is not allowed because statefulset ingester-zone-b was downscaled at 2026-01-02 11:00:00 +0000 UTC and is labelled to wait 12h1m0s between zone downscales",
      );
    });

    it("the later of tracker and annotation counts in both modes, as both may have been used", async () => {
      const [zones, more] = timed([[ago(isTracked ? 13 : 1), "12h"]], false);
      const tracker = { "ingester-zone-b": JSON.stringify({ lastDownscaled: ago(isTracked ? 1 : 13) }) };
      assert.equal((await shrink(2, zones, { ...more, isTracked, tracker })).reason, wait);
      const other = { "ingester-zone-b": JSON.stringify({ lastDownscaled: ago(isTracked ? 13 : 1) }) };
      const [swapped] = timed([[ago(isTracked ? 1 : 13), "12h"]], false);
      assert.equal((await shrink(2, swapped, { ...more, isTracked, tracker: other })).reason, wait);
    });

    for (const [hours, reason] of [
      [1, wait],
      [13, "Prepared"],
    ] as const)
      it(`a zone whose StatefulSet is gone counts by the tracker ${hours} h after its downscale: ${reason}`, async () => {
        const labels = { "grafana.com/min-time-between-zones-downscale": "12h" };
        const { statefulSets, pods } = factsOf([{ labels, selected: { "rollout-group": "ingester" } }]);
        const own = pods.map(({ metadata, ...pod }) => ({
          ...pod,
          metadata: { ...metadata, labels: { ...metadata?.labels, "rollout-group": "ingester" } },
        }));
        const tracker = { "ingester-zone-b": JSON.stringify({ lastDownscaled: ago(hours) }) };
        const facts = { statefulSets, pods: [...own, ...leftBehind({ name: "ingester-zone-b" })], isTracked, tracker };
        assert.equal((await shrink(2, [], facts)).reason, reason);
      });

    for (const viaScale of [false, true])
      it(`${viaScale ? "a Scale" : "a StatefulSet"} waits for another zone whose downscale was admitted and may still be stored, also without a minimum time`, async () => {
        const at = ago(0.01);
        const note = { uid: "uid-ingester-zone-b", generation: 1, from: 3, to: 2, prepared: { start: 2, end: 3 }, at };
        const pending = { "ingester-zone-b": note };
        const facts = { isTracked, ...(isTracked && { tracker: {} }), pending, viaScale };
        const decision = await shrink(2, ["nnn", "nnn"], facts);
        const why = `OtherZoneNotReady: the downscale of zone-b from 3 to 2 replicas, admitted at ${at}, may still be stored`;
        assert.deepEqual([explain(decision), decision.called, decision.pending], [why, [], pending]);
      });
  });

describe("an entry of the zone tracker", () => {
  const labels = { "grafana.com/min-time-between-zones-downscale": "12h" };
  for (const [entry, reason] of [
    [`{"LASTdownscaled":"${ago(13)}"}`, "Prepared"],
    [`{"LASTdownscaled":"${ago(1)}"}`, "MinTimeNotElapsed"],
    ...["", "{", "null", "[]", '{"lastDownscaled": 5}', "2026"].map((text) => [text, "DownscaleUnreadable"] as const),
  ] as const)
    it(`has its key in any case, as Go does, or is no time: ${JSON.stringify(entry)}: ${reason}`, async () => {
      const facts = { isTracked: true, tracker: { "ingester-zone-b": entry } };
      assert.equal((await shrink(2, ["nnn", { labels }], facts)).reason, reason);
    });
});

for (const [count, why] of [
  [MAX_ZONES, "Prepared"],
  [MAX_ZONES + 1, "TooManyZones: group ingester has 33 zones, more than 32."],
] as const)
  it(`a zone of a group of ${count} zones: ${why}`, async () => {
    const others = Array.from({ length: count - 1 }, (_, i) => ({ name: `zone-${i}`, replicas: 0 }));
    assert.equal(explain(await shrink(2, [judged({}), ...others], { now: NOW })), why);
  });
