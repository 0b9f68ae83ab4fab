import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { pods, statefulSets } from "../../../infra/kubernetes/resources.ts";
import { createFreshness } from "../../../infra/kubernetes/freshness.ts";

/** A list of pods: at this second, of this version, and whether it is taken. */
type Step = readonly [second: number, version: number | string, taken: boolean];

const SEQUENCES: readonly [name: string, steps: readonly Step[], restores: number][] = [
  [
    "a list as new as the newest, or newer, is taken",
    [
      [0, 100, true],
      [1, 100, true],
      [2, 107, true],
    ],
    0,
  ],
  [
    "a list of a lagging API server is refused between those of another",
    [
      [0, 100, true],
      [1, 90, false],
      [20, 95, false],
      [25, 130, true],
      [32, 97, false],
      [60, 128, false],
      [61, 131, true],
    ],
    0,
  ],
  [
    "a view that is cut off stands still: it is refused however long it lasts",
    [
      [0, 100, true],
      [1, 90, false],
      [31, 90, false],
      [3600, 90, false],
    ],
    0,
  ],
  [
    "a restored store is refused for 30 s, then taken for good",
    [
      [0, 1000, true],
      [1, 600, false],
      [16, 610, false],
      [30, 620, false],
      [31, 621, true],
      [32, 620, false],
      [33, 630, true],
    ],
    1,
  ],
  [
    "a store that is restored once more, to an older version, is waited for again",
    [
      [0, 1000, true],
      [1, 600, false],
      [30, 400, false],
      [40, 620, false],
      [60, 410, true],
    ],
    1,
  ],
  [
    "lists that overtake each other do not exclude a restored store",
    [
      [0, 1000, true],
      [1, 602, false],
      [1, 600, false],
      [11, 640, false],
      [12, 638, false],
      [31, 700, true],
    ],
    1,
  ],
  [
    "versions that are no integers are not compared",
    [
      [0, 100, true],
      [1, "abc", true],
      [2, 99, false],
    ],
    0,
  ],
];

function setStage() {
  let seconds = 0;
  const warnings: unknown[] = [];
  const freshness = createFreshness(
    { monotonic: () => seconds * 1000 },
    { warn: (text, fields) => void warnings.push([text, fields]) },
  );
  const take = (second: number, version: number | string): boolean => {
    seconds = second;
    try {
      freshness.expect(pods)(String(version));
      return true;
    } catch (error) {
      assert.equal((error as { code?: string }).code, "StaleRead");
      return false;
    }
  };
  return { freshness, take, warnings };
}

describe("freshness", () => {
  for (const [name, steps, restores] of SEQUENCES)
    it(name, () => {
      const { take, warnings } = setStage();
      assert.deepEqual(
        steps.map(([second, version]) => [second, version, take(second, version)]),
        steps,
      );
      assert.equal(warnings.length, restores, "one line for each restore");
    });

  it("counts what was written, and goes on from a write that changed nothing", () => {
    const { freshness, take } = setStage();
    freshness.noteWritten(pods, "100");
    freshness.noteWritten(pods, "50");
    freshness.noteWritten(statefulSets, "900");
    assert.deepEqual([take(1, 99), take(2, 100)], [false, true], "each resource has a floor of its own");
  });

  it("holds a list to what was seen before it began, page by page", () => {
    const { freshness, take } = setStage();
    const page = freshness.expect(pods);
    assert.ok(take(1, 100));
    page("90");
    page("90");
    assert.equal(take(2, 99), false);
  });

  it("takes the further pages of the list that showed the restore, and does not wait for each resource", () => {
    const { freshness, take } = setStage();
    freshness.noteWritten(statefulSets, "1000");
    freshness.noteWritten(pods, "1000");
    assert.equal(take(0, 500), false);
    take(40, 500);
    const page = freshness.expect(pods);
    page("510");
    page("510");
    freshness.expect(statefulSets)("505");
  });
});
