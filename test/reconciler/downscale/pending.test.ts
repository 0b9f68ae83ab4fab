import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  addDownscale,
  concludeDownscale,
  lastDownscaleOf,
  laterOf,
  markRefused,
  type PendingDownscale,
  readPending,
  refuseFurther,
} from "../../../reconciler/downscale/pending.ts";

const NOW = Date.parse("2026-01-01T12:00:00Z");
const at = (secondsAgo: number): string => new Date(NOW - secondsAgo * 1000).toISOString();
const pending = (more: Partial<PendingDownscale> = {}): PendingDownscale => ({
  uid: "u",
  generation: 7,
  from: 5,
  to: 3,
  prepared: { start: 3, end: 5 },
  at: at(10),
  ...more,
});
const zone = (replicas: number, uid = "u", generation = replicas === 5 ? 7 : 8) => ({
  uid,
  generation,
  replicas,
  firstOrdinal: 0,
});
const startingAt = (firstOrdinal: number, replicas: number) => ({ ...zone(replicas, "u", 8), firstOrdinal });

describe("a pending downscale from 5 to 3", () => {
  const EARLIER = at(3600);
  /**
   * Its state, and its conclusion: the time to write and the pods whose preparation is cancelled; undefined while it
   * may still happen.
   */
  const CASES: readonly [
    string,
    PendingDownscale,
    ReturnType<typeof zone>,
    string | undefined,
    [string | undefined, number, number] | undefined,
  ][] = [
    ["may still happen", pending(), zone(5), at(10), undefined],
    ["may still happen after 89 s", pending({ at: at(89) }), zone(5), at(89), undefined],
    ["never happened after 90 s", pending({ at: at(90) }), zone(5), undefined, [undefined, 3, 5]],
    ["never happened if it was refused", pending({ refused: true }), zone(5), undefined, [undefined, 3, 5]],
    ["can no longer happen once the spec has changed", pending(), zone(5, "u", 8), undefined, [undefined, 3, 5]],
    ["may have happened and been followed by an upscale", pending(), zone(5, "u", 9), at(10), [at(10), 3, 5]],
    ["may have happened, and the zone has grown by one since", pending(), zone(4, "u", 9), at(10), [at(10), 3, 4]],
    [
      "was refused: later changes are others'",
      pending({ refused: true }),
      zone(5, "u", 9),
      undefined,
      [undefined, 3, 5],
    ],
    ["happened", pending(), zone(3), at(10), [at(10), 3, 3]],
    ["happened long ago", pending({ at: at(4000) }), zone(3), at(4000), [at(4000), 3, 3]],
    ["happened, and more than it", pending(), zone(1), at(10), [at(10), 3, 3]],
    [
      "never happened, and the zone has grown since: the new pods were not called",
      pending({ at: at(90) }),
      zone(9),
      undefined,
      [undefined, 3, 5],
    ],
    [
      "never happened, but one before it did",
      pending({ at: at(90), earlier: EARLIER }),
      zone(5),
      EARLIER,
      [EARLIER, 3, 5],
    ],
    ["happened, and one that went further did not", pending({ to: 4 }), zone(4), at(10), [at(10), 3, 4]],
    ["happened, made smaller by another webhook", pending(), zone(4), at(10), [at(10), 3, 4]],
    [
      "was refused: fewer replicas are others' doing",
      pending({ refused: true }),
      zone(4),
      undefined,
      [undefined, 3, 4],
    ],
    [
      "of pods 5 to 9 never happened, and pods were added before the first: 8 and 9 were prepared",
      pending({ prepared: { start: 8, end: 10 } }),
      startingAt(3, 7),
      undefined,
      [undefined, 8, 10],
    ],
    ["never happened, and its first ordinal grew", pending(), startingAt(4, 5), undefined, [undefined, 4, 5]],
    ["never happened, and only pods elsewhere are left", pending(), startingAt(9, 5), undefined, [undefined, 9, 9]],
    [
      "never happened, and every pod was told",
      pending({ prepared: undefined }),
      zone(5, "u", 8),
      undefined,
      [undefined, 0, 0],
    ],
    ["concerns a StatefulSet that was recreated", pending(), zone(5, "other"), undefined, [undefined, 3, 5]],
    ["concerns one that was recreated with fewer pods", pending(), zone(3, "other"), undefined, [undefined, 3, 3]],
    ["was admitted by a clock that is ahead", pending({ at: at(-60) }), zone(5), at(-60), undefined],
    ["has a time that is none", pending({ at: "soon" }), zone(5), undefined, [undefined, 3, 5]],
  ];
  for (const [name, note, current, counts, end] of CASES)
    it(name, () => {
      assert.equal(lastDownscaleOf(note, current, NOW), counts);
      const concluded = concludeDownscale(note, current, NOW);
      assert.deepEqual(concluded && [concluded.lastDownscale, concluded.staying.start, concluded.staying.end], end);
    });

  it("that concerns a recreated StatefulSet has not happened, also if that has no more pods", () =>
    assert.equal(concludeDownscale(pending(), zone(3, "other"), NOW)?.happened, false));
  it("of a deleted StatefulSet waits for another one for as long as it could be stored, and then leaves nothing to do", () => {
    assert.equal(concludeDownscale(pending({ at: at(89) }), undefined, NOW), undefined);
    assert.deepEqual(concludeDownscale(pending({ at: at(90) }), undefined, NOW), {
      happened: false,
      lastDownscale: undefined,
      staying: { start: 0, end: 0 },
      cooldown: undefined,
    });
  });
});

describe("a further downscale of the same StatefulSet", () => {
  const next = { uid: "u", generation: 7, from: 5, to: 4, prepared: { start: 4, end: 5 }, at: at(0) };
  const all = { prepared: { start: 3, end: 5 } };
  it("keeps the pods of the previous one", () =>
    assert.deepEqual(addDownscale(pending({ since: at(10) }), next), { ...next, ...all, since: at(10) }));
  it("that was admitted on the same spec has happened as soon as one of both has", () => {
    const further = addDownscale(pending(), { ...next, to: 2, prepared: { start: 2, end: 5 } });
    assert.deepEqual([further.to, further.prepared], [3, { start: 2, end: 5 }]);
    const concluded = concludeDownscale(further, zone(3), NOW);
    assert.deepEqual(concluded, {
      happened: true,
      lastDownscale: at(0),
      staying: { start: 2, end: 3 },
      cooldown: undefined,
    });
  });
  it("keeps the time of the previous one if that happened", () =>
    assert.deepEqual(
      addDownscale(pending(), { ...next, generation: 8, from: 3, to: 2, prepared: { start: 2, end: 3 } }),
      {
        ...next,
        generation: 8,
        from: 3,
        to: 2,
        prepared: { start: 2, end: 5 },
        since: at(0),
        earlier: at(10),
      },
    ));
  it("keeps the time of the previous one if that may have happened before an upscale", () =>
    assert.equal(addDownscale(pending(), { ...next, generation: 9 }).earlier, at(10)));
  it("keeps the time of an even earlier one if the previous one did not happen", () =>
    assert.equal(addDownscale(pending({ earlier: at(99) }), next).earlier, at(99)));
  it("does not keep the refusal of the previous one", () =>
    assert.equal(addDownscale(pending({ refused: true }), next).refused, undefined));
  it("keeps the pods of one of an earlier StatefulSet, and begins a turn", () =>
    assert.deepEqual(addDownscale(pending({ uid: "old", prepared: { start: 3, end: 6 } }), next), {
      ...next,
      since: at(0),
      prepared: { start: 3, end: 6 },
    }));
  it("adds nothing to one that was cancelled whole", () =>
    assert.deepEqual(addDownscale(pending({ prepared: undefined }), next).prepared, next.prepared));
});

describe("the pending downscales in the Lease", () => {
  for (const note of [
    undefined,
    "",
    "{",
    "null",
    "[]",
    '"text"',
    '{"a":{}}',
    '{"a":null}',
    `{"a":${JSON.stringify({ ...pending(), to: "3" })}}`,
  ])
    it(`are none: ${note}`, () => assert.deepEqual(readPending(note), {}));
  it("are read back as they were written, also by an older version", () => {
    const all = { a: pending(), b: pending({ refused: true, earlier: at(1), since: at(2), tried: at(3) }) };
    assert.deepEqual(readPending(JSON.stringify(all)), all);
  });
});

it("the later of two times counts; an unreadable one takes precedence, so that it is noticed", () => {
  assert.equal(laterOf(at(1), at(2)), at(1));
  assert.equal(laterOf(at(2), at(1)), at(1));
  assert.equal(laterOf("none", at(1)), "none");
  assert.equal(laterOf(at(1), "none"), "none");
  assert.equal(laterOf(undefined, at(1)), at(1));
  assert.equal(laterOf(undefined, undefined), undefined);
});

describe("a further downscale of a zone", () => {
  const again = { uid: "u", generation: 7, replicas: 5 };
  const note = (more: Partial<PendingDownscale>): PendingDownscale => pending({ since: at(100), ...more });
  const CASES: readonly [string, PendingDownscale | undefined, boolean][] = [
    ["is not refused if none is recorded", undefined, false],
    ["is refused once the first was admitted more than 90 s ago", note({}), true],
    ["is not refused 90 s after the first", note({ since: at(90) }), false],
    ["is refused until 120 s after the last", note({ at: at(119), since: at(200) }), true],
    ["is not refused 120 s after the last", note({ at: at(120), since: at(200) }), false],
    ["is refused after another change of the spec, too", note({ generation: 6 }), true],
    ["is not refused if the last one has happened", note({ to: 5 }), false],
    [
      "is not refused if the last one has happened, made smaller by another webhook",
      note({ from: 6, generation: 6 }),
      false,
    ],
    ["is not refused if the last one may have happened before an upscale", note({ generation: 5 }), false],
    ["is refused after the last one was canceled", note({ refused: true, prepared: undefined }), true],
    ["is not refused if none was admitted", { ...note({ refused: true }), since: undefined }, false],
    ["is not refused for a recreated StatefulSet", note({ uid: "old" }), false],
    ["is refused if its start cannot be read", note({ since: "soon" }), true],
  ];
  for (const [name, pending, refused] of CASES)
    it(name, () => assert.equal(refuseFurther(pending, again, NOW)?.reason, refused ? "NeverStored" : undefined));

  it("neither begins nor ends a turn if it is denied because pods do not answer", () => {
    const next = { uid: "u", generation: 7, from: 5, to: 4, at: at(0) };
    assert.equal(markRefused(undefined, addDownscale(undefined, next)).since, undefined);
    const earlier = note({ since: at(50) });
    assert.equal(markRefused(earlier, addDownscale(earlier, next)).since, at(50));
  });
});
