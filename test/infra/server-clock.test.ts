import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import type { Clock } from "../../infra/clock.ts";
import { pods, statefulSets } from "../../infra/kubernetes/resources.ts";
import { createServerClock } from "../../infra/server-clock.ts";
import { failure, json, type Reply, stage } from "./stage.ts";

const START = Date.UTC(2026, 0, 1);
const dateOf = (ms: number): string => new Date(ms).toUTCString();

/** A machine and an API server whose clock is ahead of it, and answers that the machine gets from it. */
function meet(aheadMs: number) {
  const world = { now: START, aheadMs };
  const machine: Clock = { now: () => world.now, monotonic: () => world.now - START, sleep: () => Promise.resolve() };
  const clock = createServerClock(machine);
  return {
    world,
    clock,
    /** After a pause, milliseconds; the server writes its date after `thereMs` and the answer takes `backMs` more. */
    exchange(pauseMs: number, thereMs = 0, backMs = 0): void {
      world.now += pauseMs + thereMs;
      const date = dateOf(world.now + world.aheadMs);
      world.now += backMs;
      clock.follow(date, thereMs + backMs);
    },
    /** Milliseconds by which the clock is ahead of the server's. */
    error: (): number => clock.now() - (world.now + world.aheadMs),
  };
}

const SKEWS = [0, 400, -400, 18_000, -18_000, 120_000, -600_000];

describe("the API server's clock", () => {
  it("is the machine's before the first answer, and after answers without a date", () => {
    const { clock, world } = meet(18_000);
    assert.equal(clock.now(), world.now);
    for (const date of [undefined, "", "yesterday"]) clock.follow(date, 0);
    assert.equal(clock.now(), world.now);
  });

  for (const aheadMs of SKEWS)
    it(`is known to a second from the first answer on, ${aheadMs} ms from the machine's`, () => {
      const { exchange, error } = meet(aheadMs);
      exchange(300);
      assert.ok(Math.abs(error()) <= 1000, `${error()}`);
    });

  it("is known better the more moments of a second answers have shown", () => {
    const { exchange, error } = meet(120_000);
    for (let i = 0; i < 20; i++) exchange(350);
    assert.ok(Math.abs(error()) <= 100, `${error()}`);
  });

  it("is left alone where the machine's own agrees", () => {
    const { exchange, error } = meet(0);
    for (let i = 0; i < 20; i++) exchange(370, 5, 20);
    assert.equal(error(), 0);
  });

  it("is off by at most one second plus the duration of the last answer, for answers of any duration", () => {
    const ms = fc.integer({ min: 0, max: 5000 });
    fc.assert(
      fc.property(
        fc.integer({ min: -1e6, max: 1e6 }),
        fc.array(fc.tuple(ms, ms, ms), { minLength: 1 }),
        (aheadMs, exchanges) => {
          const { exchange, error } = meet(aheadMs);
          for (const [pause, there, back] of exchanges) {
            exchange(pause, there, back);
            assert.ok(Math.abs(error()) <= 1000 + there + back);
          }
        },
      ),
    );
  });

  it("is found again with the next answer after a step of either clock, or from another API server", () => {
    for (const step of SKEWS) {
      const { world, exchange, error } = meet(0);
      exchange(10);
      world.aheadMs += step;
      exchange(10);
      assert.ok(Math.abs(error()) <= 1000, `${error()}`);
    }
  });

  it("bounds what must not be exceeded until two answers contradict each other: then the machine's does", () => {
    for (const aheadMs of [-600_000, 0, 120_000]) {
      const { world, clock, exchange } = meet(aheadMs);
      exchange(10);
      exchange(3_600_000);
      assert.equal(clock.wall(), clock.now());
      for (const step of [3000, -3000, 30_000]) {
        world.aheadMs += step;
        exchange(10);
        assert.equal(clock.wall(), clock.now(), `after ${step} ms`);
      }
      world.aheadMs -= 30_000;
      exchange(10);
      assert.equal(clock.wall(), world.now);
    }
  });

  it("moves between API servers by no more than their clocks differ", () => {
    const { world, clock, exchange } = meet(60_000);
    const ahead: number[] = [];
    for (let i = 0; i < 400; i++) {
      world.aheadMs = i % 2 ? 60_000 : 60_450;
      exchange(137);
      if (i >= 200) ahead.push(clock.now() - world.now);
    }
    assert.ok(Math.min(...ahead) >= 60_000 && Math.max(...ahead) <= 60_450);
  });
});

describe("the port reports the date", () => {
  const date = dateOf(START);
  const dated =
    (reply: Reply): Reply =>
    (response, seen) => {
      response.setHeader("date", date);
      reply(response, seen);
    };
  const ref = { namespace: "cache", name: "zone-a-0" };
  const ANSWERS: readonly [name: string, Reply, hasDate: boolean][] = [
    ["of an answer", json({}), true],
    ["of a conflict", failure(409, "Conflict", "no"), true],
    ["of what is not there", failure(404, "NotFound", "no"), true],
    [
      "but not of a proxy that has no API server to ask",
      (response) => response.writeHead(502).end("<h1>Bad gateway</h1>"),
      false,
    ],
  ];
  for (const [name, reply, hasDate] of ANSWERS)
    it(name, async () => {
      const dates: (string | undefined)[] = [];
      const { cluster } = await stage([dated(reply)], { onDate: (when) => void dates.push(when) });
      await cluster.get(pods, ref).catch(() => {});
      assert.deepEqual(dates, hasDate ? [date] : []);
    });

  it("of a watch, and how long the answer took", async () => {
    let time = 0;
    const clock: Clock = { now: () => time, monotonic: () => time, sleep: () => Promise.resolve() };
    const dates: [string | undefined, number][] = [];
    const slow: Reply = (response) => {
      time += 700;
      response.writeHead(200, { date }).end();
    };
    const { cluster } = await stage([slow], { clock, onDate: (when, tookMs) => void dates.push([when, tookMs]) });
    await cluster.watch(
      statefulSets,
      { resourceVersion: "1" },
      { onHint: () => {}, signal: new AbortController().signal },
    );
    assert.deepEqual(dates, [[date, 700]]);
  });
});
