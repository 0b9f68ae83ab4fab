import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { describeZone, recallSeen } from "../../../reconciler/group-status/zones.ts";
import { revisionKey } from "../../../reconciler/report/log-lines.ts";
import { PREVIOUS, zone } from "../builders.ts";

const whole = zone({ name: "zone-a" });
const { status } = whole;
const at = (change: Partial<typeof status>) => describeZone({ ...whole, status: { ...status, ...change } });

const CASES: readonly [name: string, row: ReturnType<typeof at>, unfinished: boolean, rolling: boolean][] = [
  ["a zone that was to be recorded", at({ currentRevision: PREVIOUS }), true, true],
  ["one of which no pod was replaced yet", at({ currentRevision: PREVIOUS, updated: 0 }), true, false],
  ["one that was recorded", at({}), false, false],
  ["one whose template was taken back", at({ updated: 1 }), false, true],
  ["one with another template", at({ currentRevision: PREVIOUS, updateRevision: "other" }), false, true],
  ["another zone", { ...at({ currentRevision: PREVIOUS }), name: "zone-b" }, false, true],
];

describe("a process learns of the rollout before it, from the status that is stored:", () => {
  for (const [name, row, unfinished, rolling] of CASES)
    it(name, () =>
      assert.deepEqual(recallSeen([row], [whole]), {
        rolling,
        unfinished: new Set(unfinished ? [revisionKey(whole)] : []),
      }),
    );
  it("nothing of a status without zones", () =>
    assert.deepEqual(recallSeen(undefined, [whole]), { rolling: false, unfinished: new Set() }));
});
