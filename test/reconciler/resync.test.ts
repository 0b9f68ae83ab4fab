import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { dueForResync, resyncedThrough, recordResync } from "../../reconciler/resync.ts";

const PERIOD = 5 * 60_000;

describe("the resync", () => {
  it("is due for every group if none is recorded, if the last was a period ago, or if the clock went back", () => {
    for (const [lookedUntil, now] of [
      [undefined, 1000],
      [0, PERIOD],
      [5000, 4000],
    ] as const)
      assert.ok(dueForResync(lookedUntil, now)("ns/group"));
  });

  it("reaches every group exactly once per period, regardless of the ticks' duration", () => {
    fc.assert(
      fc.property(
        fc.string(),
        fc.array(fc.integer({ min: 1, max: 90_000 }), { minLength: 1, size: "max", maxLength: 200 }),
        fc.nat(2 ** 40),
        (key, pauses, start) => {
          let now = start;
          let looks = 0;
          for (const pause of pauses) {
            const until = now;
            now += pause;
            if (now - start > PERIOD) break;
            if (dueForResync(until, now)(key)) looks++;
          }
          assert.ok(looks <= 1);
          if (now - start >= PERIOD && pauses.length > 1) assert.ok(looks + Number(dueForResync(start, start + PERIOD)(key)) >= 1);
        },
      ),
    );
  });

  it("of interrupted ticks counts once every group has had its turn, from the first of them on", () => {
    const groups = ["a", "b", "c", "d", "e"];
    const TABLE: readonly [
      name: string,
      ticks: readonly [after: string, begun: number, groups?: readonly string[]][],
      until: number | undefined,
    ][] = [
      ["a whole tick", [["", 5]], 0],
      ["a tick without groups", [["", 0, []]], 0],
      ["an interrupted tick", [["", 4]], undefined],
      [
        "two that reach every group",
        [
          ["", 2],
          ["b", 3],
        ],
        0,
      ],
      [
        "two that complete a cycle from its middle",
        [
          ["c", 3],
          ["a", 2],
        ],
        0,
      ],
      [
        "two that do not complete a cycle",
        [
          ["c", 3],
          ["a", 1],
        ],
        undefined,
      ],
      [
        "an interrupted one and a whole one",
        [
          ["c", 3],
          ["a", 5],
        ],
        1000,
      ],
      [
        "groups that were deleted since",
        [
          ["", 2],
          ["b", 2, ["a", "d", "e"]],
        ],
        0,
      ],
      [
        "a group that was created since",
        [
          ["", 2],
          ["b", 3, [...groups, "f"]],
        ],
        undefined,
      ],
      [
        "a cycle after another",
        [
          ["", 3],
          ["c", 3],
          ["a", 3],
        ],
        0,
      ],
      [
        "two cycles",
        [
          ["", 3],
          ["c", 3],
          ["a", 3],
          ["d", 2],
        ],
        2000,
      ],
    ];
    for (const [name, ticks, until] of TABLE) {
      const annotations = new Map<string, string>();
      for (const [i, [after, begun, those = groups]] of ticks.entries())
        recordResync(annotations, { startedAt: i * 1000, after, begun, groups: those });
      assert.equal(resyncedThrough(annotations), until, name);
    }
  });

  it("spreads the groups over the period", () => {
    const due = dueForResync(0, PERIOD / 2);
    const count = Array.from({ length: 1000 }, (_, i) => `ns/group-${i}`).filter(due).length;
    assert.ok(count > 400 && count < 600, `${count} of 1000`);
  });
});
