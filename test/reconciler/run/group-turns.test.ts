/** Whose turn it is, over ticks and runs. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { createGroupTurns, LAST_OF_FULL, type GroupTurns } from "../../../reconciler/run/group-turns.ts";

const clock = { monotonic: () => 0 };
const groupsOf = (keys: readonly string[]) => new Map(keys.map((key) => [key, key]));
const NONE: ReadonlySet<string> = new Set();

/** What a namespace, and all, have room for. */
interface Room {
  readonly ofNamespace: number;
  readonly ofAll: number;
}

/** A tick that begins groups while there is room, `most` at most; returns those that it began. */
function tickOf(
  turns: GroupTurns,
  keys: readonly string[],
  { most, busy, room }: { most: number; busy: ReadonlySet<string>; room: Room },
) {
  const begun: string[] = [];
  const full = new Set<string>();
  const namespaceOf = (key: string) => key.slice(0, key.indexOf("/"));
  for (const turn of turns.order(groupsOf(keys), busy)) {
    const namespace = namespaceOf(turn.key);
    const running = [...busy, ...begun];
    if (begun.length >= most || running.length >= room.ofAll) break;
    if (running.filter((key) => namespaceOf(key) === namespace).length >= room.ofNamespace) full.add(namespace);
    if (full.has(namespace)) turns.pass(turn);
    else {
      turns.begin(turn);
      begun.push(turn.key);
    }
  }
  return begun;
}

/** Names of groups in namespaces of these sizes. */
const namesOf = (sizes: readonly number[]): string[] =>
  sizes.flatMap((size, n) => Array.from({ length: size }, (_, i) => `ns-${n}/g-${i}`));

describe("turns", () => {
  it("begin every group once before any is begun twice, by runs that are cut and keep nothing but annotations", () => {
    const sizes = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 30 });
    // Of each tick: how many groups it begins, and whether its run ends with it.
    const ticks = fc.array(fc.record({ most: fc.integer({ min: 1, max: 60 }), ends: fc.boolean() }), {
      minLength: 1,
      maxLength: 60,
    });
    fc.assert(
      fc.property(sizes, ticks, (of, played) => {
        const keys = namesOf(of);
        const counts = new Map(keys.map((key) => [key, 0]));
        const annotations = new Map<string, string>();
        let turns = createGroupTurns(clock, annotations);
        for (const { most, ends } of played) {
          const room = { ofNamespace: Infinity, ofAll: Infinity };
          for (const key of tickOf(turns, keys, { most, busy: NONE, room })) {
            counts.set(key, (counts.get(key) ?? 0) + 1);
            const all = [...counts.values()];
            assert.ok(Math.max(...all) - Math.min(...all) <= 1, `${key} is begun again too early`);
          }
          if (ends) turns = createGroupTurns(clock, annotations);
        }
      }),
      { numRuns: 60 },
    );
  });

  it("hold within a namespace that has room for few, which keeps no other waiting", () => {
    const sizes = fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 2, maxLength: 8 });
    fc.assert(
      fc.property(sizes, fc.integer({ min: 1, max: 4 }), fc.infiniteStream(fc.boolean()), (of, ofNamespace, ends) => {
        const keys = namesOf([90, ...of]);
        const counts = new Map(keys.map((key) => [key, 0]));
        const annotations = new Map<string, string>();
        let turns = createGroupTurns(clock, annotations);
        let played = 0;
        for (const isEnd of ends) {
          for (const key of tickOf(turns, keys, { most: 1000, busy: NONE, room: { ofNamespace, ofAll: Infinity } }))
            counts.set(key, (counts.get(key) ?? 0) + 1);
          for (const [n] of [90, ...of].entries()) {
            const own = [...counts].filter(([key]) => key.startsWith(`ns-${n}/`)).map(([, count]) => count);
            assert.ok(
              Math.max(...own) - Math.min(...own) <= 1,
              `namespace ${n} after tick ${played}: ${own.join(" ")}`,
            );
          }
          if (isEnd) turns = createGroupTurns(clock, annotations);
          if (++played === 100) break;
        }
        for (const [key, count] of counts) assert.ok(count > 0, `${key} was never begun`);
      }),
      { numRuns: 10 },
    );
  });

  it("leave out the groups whose steps are under way", () => {
    const turns = createGroupTurns(clock, new Map());
    const keys = ["a/1", "a/2", "b/1"];
    assert.deepEqual(
      turns
        .order(groupsOf(keys), new Set(["a/2"]))
        .map(({ key }) => key)
        .toSorted(),
      ["a/1", "b/1"],
    );
  });

  it("go on where they were, whatever groups have come or gone", () => {
    const annotations = new Map<string, string>();
    const turns = createGroupTurns(clock, annotations);
    const keys = namesOf([10, 10, 10]);
    const round = turns.order(groupsOf(keys), NONE).map(({ key }) => key);
    for (const turn of turns.order(groupsOf(keys), NONE).slice(0, 12)) turns.begin(turn);
    const [gone = "", next] = [round[11], round[12]];
    const later = createGroupTurns(clock, annotations).order(groupsOf(keys.filter((key) => key !== gone)), NONE);
    assert.equal(later[0]?.key, next);
    assert.deepEqual(later.map(({ key }) => key).slice(-11), round.slice(0, 11));
  });

  it("remember a bounded number of namespaces that had no room", () => {
    const annotations = new Map<string, string>();
    const turns = createGroupTurns(clock, annotations);
    for (const turn of turns.order(groupsOf(namesOf(Array.from({ length: 500 }, () => 2))), NONE)) turns.pass(turn);
    assert.equal(annotations.get(LAST_OF_FULL)?.split(" ").length, 64);
  });

  it("shorten an annotation that somebody has made longer", () => {
    const keys = namesOf(Array.from({ length: 100 }, () => 1));
    const annotations = new Map([[LAST_OF_FULL, keys.join(" ")]]);
    const turns = createGroupTurns(clock, annotations);
    for (const turn of turns.order(groupsOf(["other/g-0"]), NONE)) turns.pass(turn);
    assert.equal(annotations.get(LAST_OF_FULL)?.split(" ").length, 64);
  });

  it("remember since when a group is left out, not counting its own step, and what is awaited", () => {
    let now = 0;
    const turns = createGroupTurns({ monotonic: () => now }, new Map());
    assert.equal(turns.leave("a/1", "busy"), 0);
    assert.deepEqual([turns.isAwaited("a/1"), turns.isAwaited("b/1")], [true, false]);
    now = 20_000;
    assert.equal(turns.leave("a/1", "noRoom"), 0);
    assert.ok(turns.isAwaited("b/1"), "the end of any step may be the room of a/1");
    now = 51_000;
    assert.equal(turns.leave("a/1", "noTime"), 31_000);
    turns.order(new Map(), NONE);
    assert.equal(turns.leave("a/1", "noRoom"), 0, "a group that is gone is forgotten");
  });
});
