import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { least, runs } from "../../runs.ts";
import { calmDown, createWorld, happen, HAPPENINGS } from "../rollout/world.ts";
import { data, lost, noData } from "./builders.ts";
import { Play } from "./onlooker.ts";

const ANSWERS = { noData, data, lost } as const;
const answerKind = fc.constantFrom<keyof typeof ANSWERS>("noData", "noData", "data", "lost");
/** A tick: what Prometheus answers, and whether the process dies before or after the write, if at all. */
const tick = fc.record({
  tick: answerKind,
  dies: fc.constantFrom("no", "no", "no", "before the write", "after the write"),
  seconds: fc.oneof({ weight: 19, arbitrary: fc.nat(15) }, { weight: 1, arbitrary: fc.constant(100) }),
});
/** A bypass for so many seconds; 0 ends it, and what is longer than a day is refused. */
const bypass = fc.record({ bypass: fc.nat(3), forSeconds: fc.constantFrom(0, 20, 300, 90_000) });
const event = fc.oneof(
  { weight: 8, arbitrary: tick },
  { weight: 1, arbitrary: bypass },
  { weight: 1, arbitrary: fc.constant({ what: "syncAll" as const, zone: 0, pod: 0 }) },
  { weight: 6, arbitrary: fc.constant("calm" as const) },
  { weight: 2, arbitrary: fc.record({ what: fc.constantFrom(...HAPPENINGS), zone: fc.nat(3), pod: fc.nat(5) }) },
);
const history = fc.record({
  // Most have a next zone to begin; some have one zone, or zones without pods.
  sizes: fc.oneof(
    { weight: 4, arbitrary: fc.array(fc.integer({ min: 1, max: 3 }), { minLength: 2, maxLength: 3 }) },
    { weight: 1, arbitrary: fc.array(fc.nat(3), { minLength: 1, maxLength: 3 }) },
  ),
  maxUnavailable: fc.integer({ min: 1, max: 2 }),
  when: fc.constantFrom(["BetweenZones"], ["BeforeFirstZone"], ["BeforeFirstZone", "BetweenZones", "AfterLastZone"]),
  events: fc.array(event, { maxLength: 80, size: "max" }),
});
type Event = typeof event extends fc.Arbitrary<infer T> ? T : never;
type History = typeof history extends fc.Arbitrary<infer T> ? T : never;

function takeEvent(play: Play, next: Event): void {
  if (next === "calm") return calmDown(play.cluster);
  if ("bypass" in next) return play.bypass(next.bypass, next.forSeconds);
  if ("tick" in next) return void play.tick(ANSWERS[next.tick], next.dies, next.seconds);
  const sets = play.cluster.sets();
  const set = sets[next.zone % sets.length];
  if (set) happen(next.what, play.cluster, set, next.pod);
}

const at0 = { zone: 0, pod: 0 } as const;
const deploy = { what: "deploy", ...at0 } as const;
const revert = { what: "revert", ...at0 } as const;
const pause = { what: "pause", ...at0 } as const;
const resume = { what: "resume", ...at0 } as const;
const sync = { what: "syncAll", ...at0 } as const;
const stumble = { what: "stumble", zone: 1, pod: 0 } as const;
const quiet = { tick: "noData", dies: "no", seconds: 0 } as const;
const later = { ...quiet, seconds: 10 };
const dying = { ...quiet, dies: "before the write" } as const;
const FOUND: [History][] = [
  // The process dies after the first deletion in zone b; then zone a is to begin, which an earlier rollout had begun.
  [
    {
      sizes: [1, 1],
      maxUnavailable: 1,
      when: ["BetweenZones"],
      events: [
        [deploy, deploy, "calm", quiet, quiet, "calm"] as const,
        [revert, pause, "calm", quiet, later, dying] as const,
        [resume, "calm", quiet, { ...quiet, seconds: 100 }] as const,
      ].flat(),
    },
  ],
  [
    {
      sizes: [1, 2],
      maxUnavailable: 2,
      when: ["BetweenZones"],
      events: [
        [deploy, "calm", quiet, quiet, "calm", deploy, sync, stumble] as const,
        [quiet, quiet, later, dying, { ...quiet, seconds: 8 }] as const,
        [{ ...quiet, tick: "data" } as const, quiet, "calm", quiet, quiet] as const,
      ].flat(),
    },
  ],
  // Zone b has passed and is recorded as begun; the process does not come back until the answers are old.
  [
    {
      sizes: [1, 1],
      maxUnavailable: 1,
      when: ["BetweenZones"],
      events: [
        [deploy, "calm", quiet, quiet, "calm", { ...quiet, seconds: 100 }, quiet, later, quiet, quiet, "calm"] as const,
        [deploy, "calm", quiet, quiet, "calm", quiet, quiet, { ...quiet, seconds: 5 }] as const,
        [{ ...quiet, seconds: 5 }, quiet, { ...quiet, seconds: 100 }] as const,
      ].flat(),
    },
  ],
];

/** Nothing finishes after them unless a user acts. */
const HINDRANCES: ReadonlySet<string> = new Set(["pause", "crash", "limp"]);
const whatOf = (next: Event): string => (next !== "calm" && "what" in next ? next.what : "");

const LEAST = {
  GateWaiting: 1000,
  GateUnreachable: 100,
};

describe("over random answers, deaths, templates and bypasses", () => {
  it("no zone begins before its checks have passed for these templates, unless it has a bypass", () => {
    const reached: Record<string, number> = {};
    fc.assert(
      fc.property(history, ({ sizes, maxUnavailable, when, events }) => {
        const play = new Play(createWorld(sizes, maxUnavailable), when, reached);
        play.tick(noData);
        events.forEach((next) => takeEvent(play, next));
      }),
      {
        numRuns: runs(2500),
        examples: FOUND,
      },
    );
    for (const [what, count] of Object.entries(LEAST))
      assert.ok((reached[what] ?? 0) >= least(count, 2000), `${what}: ${JSON.stringify(reached)}`);
  });

  it("what can finish does finish once the checks succeed, and a settled gate gets no write", () => {
    fc.assert(
      fc.property(history, ({ sizes, maxUnavailable, when, events }) => {
        const play = new Play(createWorld(sizes, maxUnavailable), when);
        play.tick(noData);
        events.filter((next) => !HINDRANCES.has(whatOf(next))).forEach((next) => takeEvent(play, next));
        for (let quiet = 0, ticks = 0; quiet < 3; ticks++) {
          calmDown(play.cluster);
          const before = play.writes;
          const decision = play.tick(noData, "no", 10);
          quiet = decision === undefined && play.writes === before ? quiet + 1 : 0;
          assert.ok(ticks < 100, `still ${JSON.stringify(decision)} after ${ticks} ticks`);
        }
      }),
      { numRuns: runs(1000) },
    );
  });
});
