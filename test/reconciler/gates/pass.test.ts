import assert from "node:assert/strict";
import { it } from "node:test";
import type { Zone } from "../../../reconciler/model/zone.ts";
import { data, lost, noData, OTHER, stored, viewOf } from "./builders.ts";
import { advanceGate } from "../../../reconciler/gates/advance.ts";
import { b, histories, play, reasonFor, underWay, zones, type History, ticks } from "./play.ts";

const DAY = 86_400;
/** Another zone is in the way. */
const AWAY = { wanted: OTHER };
/** Zone b with these counts. */
const withB = (traits: Partial<Zone>, counts: Partial<Zone["status"]>): readonly Zone[] =>
  zones.map((one) => (one.uid === b.uid ? { ...one, ...traits, status: { ...one.status, ...counts } } : one));
/** A pod of zone b is of an earlier rollout that was not settled; so many have the new template. */
const mixed = (updated: number) => ({ zones: withB({}, { current: 2, updated }) });
const resized = (replicas: number, existing: number, updated: number) => ({
  zones: withB({ replicas }, { replicas: existing, current: existing - updated, updated }),
  wanted: OTHER,
});

type Row = readonly [name: string, ticks: History[2], seen: readonly string[]];

/** After the pass of zone b at 10 s, which it has not used; at 11 s, that it begins is recorded. */
const passed = (rows: readonly Row[], traits = {}): readonly History[] =>
  rows.map(([name, ticks, seen]) => [
    name,
    traits,
    [[0, noData], [10, noData], ...ticks],
    ["errors Waiting a GateWaiting", "errors Passed a GateWaiting", ...seen],
  ]);

histories("a pass that its zone has not used yet", [
  [
    "is not given while another zone is in the way, however long the checks succeed",
    {},
    ticks([0, noData], [10, noData, AWAY], [20, noData, AWAY], [31, data], [DAY, noData]),
    [
      "errors Waiting a GateWaiting",
      "errors Waiting a GateWaiting",
      "errors Waiting a GateWaiting",
      "errors Waiting a GateWaiting",
      "errors Waiting a GateWaiting",
    ],
  ],
  ...passed([
    [
      "stays while its checks succeed, also for long",
      [21, 32, 43, 54, 65, 76, 87].map((seconds) => [seconds, noData, AWAY]),
      Array.from({ length: 7 }, () => "errors Passed a GateWaiting"),
    ],
    [
      "ends when a check fails",
      ticks([21, data, AWAY], [22, noData]),
      ["errors Passed a GateWaiting", "- Waiting a GateWaiting"],
    ],
    [
      "ends when a check cannot be asked",
      ticks([21, lost, AWAY], [22, noData]),
      ["errors Passed a GateUnreachable", "- Waiting a GateUnreachable"],
    ],
    [
      "has ended a minute after the last answer, also where the zone was let begin and could not",
      ticks([11, noData], [71, noData]),
      ["- Passed ab free", "errors Waiting a GateWaiting"],
    ],
    [
      "is kept for good once a pod of the zone was replaced, and no check is asked any more",
      ticks([11, noData], [DAY, data, { zones: underWay }]),
      ["- Passed ab free", "- Passed ab free"],
    ],
    [
      "is asked for again although a pod of the zone was lost meanwhile, as only the rollout begins a zone",
      [[DAY, noData, { zones: underWay }]],
      ["errors Waiting a GateWaiting"],
    ],
    [
      "ends as the others do in a zone with a pod of an earlier rollout, while no pod is replaced",
      ticks([11, noData, mixed(0)], [71, noData, mixed(0)]),
      ["- Passed ab free", "errors Waiting a GateWaiting"],
    ],
    [
      "is kept there once a pod is replaced",
      ticks([11, noData, mixed(0)], [71, noData, mixed(1)]),
      ["- Passed ab free", "- Passed ab free"],
    ],
    [
      "is kept once all pods of the zone are updated and it is scaled to 0",
      ticks([11, noData], [DAY, noData, resized(0, 0, 0)]),
      ["- Passed ab free", "- Passed ab free"],
    ],
    [
      "is kept in a zone of updated pods alone",
      ticks([11, noData], [DAY, noData, resized(1, 1, 1)]),
      ["- Passed ab free", "- Passed ab free"],
    ],
    [
      "ends in a zone whose pods beyond its replicas are not gone yet",
      ticks([11, noData], [DAY, noData, resized(0, 3, 0)]),
      ["- Passed ab free", "errors Waiting a GateWaiting"],
    ],
  ]),
  ...passed(
    [
      [
        "ends as failed after as many failures as the check allows",
        ticks([21, data, AWAY], [22, noData, AWAY]),
        ["errors Passed a GateWaiting", "- Failed a GateFailed"],
      ],
    ],
    { check: { failureThreshold: 1 } },
  ),
]);

it("a pass counts for a minute after the last answer; one that its zone has used asks for no time to come back", () => {
  const { record } = play({}, [0, noData], [10, noData], [11, noData]);
  assert.deepEqual([reasonFor({}, record, 70), reasonFor({}, record, 71)], [undefined, "GateWaiting"]);
  const view = { ...viewOf(underWay, b, DAY), isHeld: false };
  assert.equal(advanceGate(stored({}, record), view, new Map()).nextAt, undefined);
});
