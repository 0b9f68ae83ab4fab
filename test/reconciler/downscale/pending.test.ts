/** What becomes of downscales that a Lease records: before they are stored, and if they never are (§4.3, §13.5). */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { startConcluder } from "./adapter.ts";
import { statefulSetObject } from "../../builders/zones.ts";
import { judged, NOW, shrink } from "./scene.ts";

const A = "ingester-zone-a";
const at = (secondsAgo: number): string => `${new Date(NOW - secondsAgo * 1000).toISOString().slice(0, 19)}Z`;
const UID = `uid-${A}`;

/** A downscale from 5 to 3, which was admitted 10 s ago. */
const pending = (more: object = {}): object => ({
  uid: UID,
  generation: 7,
  from: 5,
  to: 3,
  prepared: { start: 3, end: 5 },
  at: at(10),
  ...more,
});
const { prepared: _, ...CANCELLED } = pending() as { readonly prepared: object };

describe("a pending downscale from 5 to 3", () => {
  const EARLIER = at(3600);
  type Zone = readonly [replicas: number, generation?: number, uid?: string, start?: number];
  /** The time that is written on the zone, and the ordinals of pods that are told that they stay; undefined: nothing yet. */
  type End = readonly [time: string | undefined, told: string] | undefined;
  const CASES: readonly [string, object, Zone, End][] = [
    ["may still happen", pending(), [5], undefined],
    ["may still happen after 89 s", pending({ at: at(89) }), [5], undefined],
    ["never happened after 90 s", pending({ at: at(90) }), [5], [undefined, "3 4"]],
    ["never happened if it was refused", pending({ refused: true }), [5], [undefined, "3 4"]],
    ["can no longer happen once the spec has changed", pending(), [5, 8], [undefined, "3 4"]],
    ["may have happened and been followed by an upscale", pending(), [5, 9], [at(10), "3 4"]],
    ["may have happened, and the zone has grown by one since", pending(), [4, 9], [at(10), "3"]],
    ["was refused: later changes are others'", pending({ refused: true }), [5, 9], [undefined, "3 4"]],
    ["happened", pending(), [3, 8], [at(10), ""]],
    ["happened long ago", pending({ at: at(4000) }), [3, 8], [at(4000), ""]],
    ["happened, and more than it", pending(), [1, 8], [at(10), ""]],
    [
      "never happened, and the zone has grown since: the new pods were not called",
      pending({ at: at(90) }),
      [9, 8],
      [undefined, "3 4"],
    ],
    ["never happened, but one before it did", pending({ at: at(90), earlier: EARLIER }), [5], [EARLIER, "3 4"]],
    ["happened, and one that went further did not", pending({ to: 4 }), [4, 8], [at(10), "3"]],
    ["happened, made smaller by another webhook", pending(), [4, 8], [at(10), "3"]],
    ["was refused: fewer replicas are others' doing", pending({ refused: true }), [4, 8], [undefined, "3"]],
    [
      "of pods 5 to 9 never happened, and pods were added before the first: 8 and 9 were prepared",
      pending({ prepared: { start: 8, end: 10 } }),
      [7, 8, UID, 3],
      [undefined, "8 9"],
    ],
    ["never happened, and its first ordinal grew", pending(), [5, 8, UID, 4], [undefined, "4"]],
    ["never happened, and only pods elsewhere are left", pending(), [5, 8, UID, 9], [undefined, ""]],
    ["never happened, and every pod was told", CANCELLED, [5, 8], [undefined, ""]],
    ["concerns a StatefulSet that was recreated", pending(), [5, 8, "other"], [undefined, "3 4"]],
    ["concerns one that was recreated with fewer pods", pending(), [3, 8, "other"], [undefined, ""]],
    ["was admitted by a clock that is ahead", pending({ at: at(-60) }), [5], undefined],
    ["has a time that is none", pending({ at: "soon" }), [5], [undefined, "3 4"]],
  ];
  for (const [name, note, [replicas, generation = 7, uid = UID, start = 0], end] of CASES)
    it(`${name}: ${end?.join(", told ") ?? "it stays"}`, async () => {
      const zone = statefulSetObject(judged({ replicas, generation, start }));
      const statefulSets = [{ ...zone, metadata: { ...zone.metadata, uid } }];
      const on = startConcluder({ now: NOW, statefulSets, notes: { lease: { pending: { [A]: note } } } });
      await on.conclude();
      const told = on.told.map((call) => call.replace(`DELETE ${A}-`, ""));
      assert.equal(on.isPending("lease"), end === undefined);
      assert.deepEqual([on.written(A), told.toSorted().join(" ")], end ?? [undefined, ""]);
    });

  for (const [seconds, isPending] of [
    [89, true],
    [90, false],
  ] as const)
    it(`of a StatefulSet that is gone waits for another one for as long as it could be stored: ${seconds} s`, async () => {
      const notes = { lease: { pending: { [A]: pending({ at: at(seconds) }) } } };
      const on = startConcluder({ now: NOW, statefulSets: [], notes });
      await on.conclude();
      assert.deepEqual([on.isPending("lease"), on.told], [isPending, []]);
    });
});

/** Asks for a downscale of the zone, which has 5 replicas in generation 7, while this is recorded. */
async function again(note: object | undefined, to = 4, { generation = 7, replicas = 5, status = 200 } = {}) {
  const more = { pending: { ...(note && { [A]: note }) }, answers: () => status };
  return await shrink(to, [{ replicas, generation }], more);
}

describe("the record of a further downscale of the same StatefulSet", () => {
  type Further = Parameters<typeof again>;
  const next = { uid: UID, generation: 7, from: 5, to: 4, prepared: { start: 4, end: 5 }, at: at(0), since: at(0) };
  const all = { prepared: { start: 3, end: 5 } };
  const CASES: readonly [string, Further, object][] = [
    ["keeps the pods of the previous one", [pending({ since: at(10) })], { ...next, ...all, since: at(10) }],
    [
      "of the same spec counts as happened as soon as one of both has",
      [pending({ since: at(10) }), 2],
      { ...next, since: at(10), to: 3, prepared: { start: 2, end: 5 } },
    ],
    [
      "keeps the time of the previous one if that happened",
      [pending(), 2, { generation: 8, replicas: 3 }],
      { ...next, generation: 8, from: 3, to: 2, prepared: { start: 2, end: 5 }, earlier: at(10) },
    ],
    [
      "keeps the time of the previous one if that may have happened before an upscale",
      [pending(), 4, { generation: 9 }],
      { ...next, ...all, generation: 9, earlier: at(10) },
    ],
    [
      "keeps the time of an even earlier one if the previous one did not happen",
      [pending({ since: at(10), earlier: at(99) })],
      { ...next, ...all, since: at(10), earlier: at(99) },
    ],
    [
      "does not keep the refusal of the previous one",
      [pending({ since: at(10), refused: true })],
      { ...next, ...all, since: at(10) },
    ],
    [
      "keeps the pods of one of an earlier StatefulSet, and begins a turn",
      [pending({ uid: "old", prepared: { start: 3, end: 6 }, since: at(10) })],
      { ...next, prepared: { start: 3, end: 6 } },
    ],
    ["adds nothing to one that was cancelled whole", [{ ...CANCELLED, since: at(10) }], { ...next, since: at(10) }],
    ["begins with the first one", [undefined], next],
    [
      "begins no turn if that is denied because pods do not answer",
      [undefined, 4, { status: 500 }],
      { ...next, refused: true, since: undefined },
    ],
    [
      "continues the turn if it is denied because pods do not answer, and the earlier one was refused",
      [pending({ since: at(50), refused: true }), 4, { status: 500 }],
      { ...next, ...all, refused: true, since: at(50) },
    ],
  ];
  for (const [name, further, expected] of CASES)
    it(name, async () => {
      const { pending: recorded } = await again(...further);
      assert.deepEqual(recorded[A], JSON.parse(JSON.stringify(expected)));
    });
});

describe("a further downscale of a zone", () => {
  const note = (more: object): object => pending({ since: at(100), ...more });
  const { since: _since, ...UNADMITTED } = note({ refused: true }) as { readonly since: string };
  const CASES: readonly [string, object | undefined, "NeverStored" | "Prepared"][] = [
    ["none is recorded", undefined, "Prepared"],
    ["the first was admitted more than 90 s ago", note({}), "NeverStored"],
    ["the first was admitted 90 s ago", note({ since: at(90) }), "Prepared"],
    ["the last was admitted less than 120 s ago", note({ at: at(119), since: at(200) }), "NeverStored"],
    ["the last was admitted 120 s ago", note({ at: at(120), since: at(200) }), "Prepared"],
    ["the spec has changed otherwise", note({ generation: 6 }), "NeverStored"],
    ["the last one has happened", note({ to: 5 }), "Prepared"],
    ["the last one has happened, made smaller by another webhook", note({ from: 6, generation: 6 }), "Prepared"],
    ["the last one may have happened before an upscale", note({ generation: 5 }), "Prepared"],
    ["the last one was cancelled", { ...CANCELLED, since: at(100), refused: true }, "NeverStored"],
    ["none was admitted", UNADMITTED, "Prepared"],
    ["the StatefulSet was recreated", note({ uid: "old" }), "Prepared"],
    ["its start cannot be read", note({ since: "soon" }), "NeverStored"],
  ];
  for (const [name, recorded, reason] of CASES)
    it(`if ${name}: ${reason}`, async () => assert.equal((await again(recorded)).reason, reason));
});
