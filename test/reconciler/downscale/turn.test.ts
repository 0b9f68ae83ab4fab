/**
 * Turns of zones whose downscales are never stored, under any requests, at any time of the reconciler's ticks, and with
 * any other changes.
 */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import {
  addDownscale,
  concludeDownscale,
  findAdmitted,
  lastDownscaleOf,
  laterOf,
  markRefused,
  mayStillHappen,
  type PendingDownscale,
  readPending,
  refuseFurther,
} from "../../../reconciler/downscale/pending.ts";
import { refuseByTime } from "../../../reconciler/scaling/min-time.ts";

const S = 1000;
const START = Date.parse("2026-01-01T12:00:00Z");
const ZONES = ["a", "b", "c"] as const;
type Name = (typeof ZONES)[number];

/**
 * The outcome of an admitted downscale by two pods: it is stored after a while, perhaps made smaller by another webhook, another webhook refuses it, its pods answer neither
 * POST nor DELETE, or its process dies before the answer.
 */
type Fate =
  | { readonly storedAfterMs: number; readonly spares: 0 | 1 }
  | "refused elsewhere"
  | "pods do not answer"
  | "dies";
type Step =
  | { readonly kind: "downscale"; readonly name: Name; readonly fate: Fate }
  | { readonly kind: "edit"; readonly name: Name }
  | { readonly kind: "tick" };

const fate: fc.Arbitrary<Fate> = fc.oneof(
  {
    weight: 20,
    arbitrary: fc.constantFrom<Fate>("refused elsewhere", "refused elsewhere", "pods do not answer", "dies"),
  },
  {
    weight: 1,
    arbitrary: fc.record({ storedAfterMs: fc.integer({ min: 0, max: 60 * S }), spares: fc.constantFrom(0, 1) }),
  },
);
const name = fc.constantFrom<Name>("a", "a", "a", "b", "c");
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 8, arbitrary: fc.record({ kind: fc.constant("downscale" as const), name, fate }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("edit" as const), name }) },
  { weight: 3, arbitrary: fc.constant({ kind: "tick" as const }) },
);
const steps = fc.array(fc.tuple(fc.integer({ min: 0, max: 20 }), step), { minLength: 20, maxLength: 120 });

interface Zone {
  readonly name: Name;
  readonly firstOrdinal: 0;
  readonly uid: string;
  generation: number;
  replicas: number;
  last?: string | undefined;
}

/**
 * Three zones of a group with 12 h between downscales, the pending downscales in their Lease, and the admitted
 * downscales that are not stored yet.
 */
function createWorld() {
  let now = START;
  const zones = ZONES.map((name): Zone => ({ name, firstOrdinal: 0, uid: name, generation: 1, replicas: 99 }));
  let pending: Record<string, PendingDownscale> = {};
  let underway: { readonly zone: Zone; readonly generation: number; readonly to: number; readonly at: number }[] = [];
  const stored = new Set<Name>();
  const seen = { admitted: 0, refused: 0, neverStored: 0, stored: 0, taken: 0 };
  /** The first and the last admission of each zone's turn, seen from outside. */
  const turns = new Map<Name, { first: number; last: number; generation: number }>();

  function store(): void {
    for (const { zone, generation, to } of underway.filter(({ at }) => at <= now)) {
      if (zone.generation !== generation) continue;
      zone.replicas = to;
      zone.generation++;
      stored.add(zone.name);
      turns.delete(zone.name);
      seen.stored++;
    }
    underway = underway.filter(({ at }) => at > now);
  }

  function isHeld(zone: Zone): boolean {
    const others = zones.filter((other) => other !== zone);
    const times = others.map((other) => ({
      name: other.name,
      lastDownscale: laterOf(other.last, lastDownscaleOf(pending[other.name], other, now)),
      minTime: "12h",
    }));
    return refuseByTime(times, now, "unreadable") !== undefined || findAdmitted(pending, others, now) !== undefined;
  }

  function requestDownscale(zone: Zone, fate: Fate): void {
    const found = pending[zone.name];
    const refusal = refuseFurther(found, zone, now);
    if (refusal) return void seen.neverStored++;
    const to = zone.replicas - 2;
    const note = addDownscale(found, {
      uid: zone.uid,
      generation: zone.generation,
      from: zone.replicas,
      to,
      prepared: { start: to, end: zone.replicas },
      at: new Date(now).toISOString(),
    });
    if (isHeld(zone)) return void seen.refused++;
    if (fate === "pods do not answer") {
      // Pods that an earlier request prepared, and that may still be removed, stay prepared.
      if (!found || !mayStillHappen(found, zone, now)) pending = { ...pending, [zone.name]: markRefused(found, note) };
      return;
    }
    pending = { ...pending, [zone.name]: note };
    seen.admitted++;
    checkTurn(zone);
    if (typeof fate === "object")
      underway.push({ zone, generation: zone.generation, to: to + fate.spares, at: now + fate.storedAfterMs });
  }

  /**
   * Admissions within 120 s of each other are one turn, of at most 90 s: other zones wait for at most 180 s, and not
   * for 30 s after that.
   */
  function checkTurn({ name, generation }: Zone): void {
    const turn = turns.get(name);
    const goesOn = turn && now - turn.last < 120 * S && generation <= turn.generation + 1;
    if (goesOn)
      assert.ok(now - turn.first <= 90 * S, `${name} is admitted ${now - turn.first} ms after its turn began`);
    turns.set(name, { first: goesOn ? turn.first : now, last: now, generation });
  }

  function tick(): void {
    for (const zone of zones) {
      const one = pending[zone.name];
      const conclusion = one && concludeDownscale(one, zone, now);
      if (!conclusion) continue;
      zone.last = laterOf(zone.last, conclusion.lastDownscale);
      const { [zone.name]: _, ...others } = pending;
      pending = conclusion.cooldown ? { ...others, [zone.name]: conclusion.cooldown } : others;
      // The Lease stores it as JSON.
      pending = readPending(JSON.stringify(pending));
      seen.taken++;
    }
  }

  return {
    seen,
    stored,
    play([seconds, step]: readonly [number, Step]): void {
      now += seconds * S;
      store();
      const zone = zones.find(({ name }) => step.kind !== "tick" && name === step.name);
      if (step.kind === "tick") tick();
      else if (zone && step.kind === "edit") zone.generation++;
      else if (zone && step.kind === "downscale") requestDownscale(zone, step.fate);
    },
  };
}

it("two zones never shrink together, and no zone holds the others longer than its turn and the time to store, in 2,000 random groups", () => {
  const reached = { admitted: 0, refused: 0, neverStored: 0, stored: 0, taken: 0 };
  fc.assert(
    fc.property(steps, (steps) => {
      const world = createWorld();
      for (const step of steps) world.play(step);
      assert.ok(world.stored.size <= 1, [...world.stored].join());
      for (const key of Object.keys(reached) as (keyof typeof reached)[]) reached[key] += world.seen[key];
    }),
    { numRuns: 2000 },
  );
  assert.ok(
    Object.values(reached).every((times) => times > 500),
    JSON.stringify(reached),
  );
});

describe("a further downscale of a zone", () => {
  const zone = { uid: "u", generation: 7, replicas: 5 };
  const ago = (seconds: number): string => new Date(START - seconds * S).toISOString();
  const note = (more: Partial<PendingDownscale>): PendingDownscale => ({
    uid: "u",
    generation: 7,
    from: 5,
    to: 3,
    prepared: { start: 3, end: 5 },
    at: ago(10),
    since: ago(100),
    ...more,
  });
  const CASES: readonly [string, PendingDownscale | undefined, boolean][] = [
    ["is not refused if none is recorded", undefined, false],
    ["is refused once the first was admitted more than 90 s ago", note({}), true],
    ["is not refused 90 s after the first", note({ since: ago(90) }), false],
    ["is refused until 120 s after the last", note({ at: ago(119), since: ago(200) }), true],
    ["is not refused 120 s after the last", note({ at: ago(120), since: ago(200) }), false],
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
    it(name, () => assert.equal(refuseFurther(pending, zone, START)?.reason, refused ? "NeverStored" : undefined));

  it("neither begins nor ends a turn if it is denied because pods do not answer", () => {
    const next = { uid: "u", generation: 7, from: 5, to: 4, at: ago(0) };
    assert.equal(markRefused(undefined, addDownscale(undefined, next)).since, undefined);
    const earlier = note({ since: ago(50) });
    assert.equal(markRefused(earlier, addDownscale(earlier, next)).since, ago(50));
  });
});
