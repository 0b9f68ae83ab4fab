import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { createResync, dueForResync, resyncedThrough } from "../../../reconciler/run/resync.ts";

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
          if (now - start >= PERIOD && pauses.length > 1)
            assert.ok(looks + Number(dueForResync(start, start + PERIOD)(key)) >= 1);
        },
      ),
    );
  });

  const keys = Array.from({ length: 500 }, (_, i) => `ns/group-${i}`);

  it("is owed until the group is begun, whatever ticks and runs come between", () => {
    fc.assert(
      fc.property(
        fc.array(
          fc.record({
            chance: fc.double({ min: 0, max: 1, noNaN: true }),
            pause: fc.integer({ min: 1, max: 90_000 }),
            ends: fc.boolean(),
          }),
          {
            maxLength: 30,
          },
        ),
        fc.infiniteStream(fc.double({ min: 0, max: 1, noNaN: true })),
        (ticks, random) => {
          const annotations = new Map<string, string>();
          let resync = createResync(annotations);
          const begunAt = new Map<string, number>();
          let now = 1_000_000;
          for (const { chance, pause, ends } of ticks) {
            now += pause;
            for (const key of keys) {
              if (!resync.isDue(key, now) || (random.next().value ?? 0) >= chance) continue;
              resync.begin(key, now);
              begunAt.set(key, now);
              assert.ok(!resync.isDue(key, now));
            }
            resync.endTick(keys, now);
            if (ends) resync = createResync(annotations);
            for (const key of keys)
              assert.ok(
                resync.isDue(key, now) || now - (begunAt.get(key) ?? -Infinity) < PERIOD,
                `${key} is taken for resynced`,
              );
          }
        },
      ),
      { numRuns: 30 },
    );
  });

  it("of a tick that begins every group counts for all, in one time", () => {
    const annotations = new Map<string, string>();
    const resync = createResync(annotations);
    for (const key of keys) resync.begin(key, 5000);
    resync.endTick(keys, 5000);
    assert.equal(resyncedThrough(annotations), 5000);
    assert.equal(annotations.get("zonewise/resynced-sectors"), "");
  });

  it("that one group is owed keeps few others from counting", () => {
    const annotations = new Map<string, string>();
    const resync = createResync(annotations);
    for (const key of keys.slice(1)) resync.begin(key, 5000);
    resync.endTick(keys, 5000);
    const next = createResync(annotations);
    const due = keys.filter((key) => next.isDue(key, 5001));
    assert.ok(due.includes("ns/group-0") && due.length < 40, `${due.length} are due`);
    assert.equal(keys.filter((key) => resync.isDue(key, 5001)).length, 1, "in the same process, it alone");
    assert.equal(resyncedThrough(annotations), undefined);
  });

  it("spreads the groups over the period", () => {
    const due = dueForResync(0, PERIOD / 2);
    const count = Array.from({ length: 1000 }, (_, i) => `ns/group-${i}`).filter(due).length;
    assert.ok(count > 400 && count < 600, `${count} of 1000`);
  });
});
