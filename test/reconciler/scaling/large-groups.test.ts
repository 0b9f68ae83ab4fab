/**
 * What a decision costs, and how long its messages are, does not grow with the square of the zones. Counted, as times
 * depend on the machine.
 */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { describeProtection } from "../../../reconciler/budget/protection.ts";
import { judgeGates } from "../../../reconciler/gates/hold.ts";
import { identityOf } from "../../../reconciler/gates/rollout.ts";
import { BUDGET_KIND, parseBudget } from "../../../reconciler/budget/zpdb.ts";
import type { Hold } from "../../../reconciler/model/decision.ts";
import type { ZoneWithPods } from "../../../reconciler/model/zone.ts";
import { decideRollout } from "../../../reconciler/rollout/decide-rollout.ts";
import { decideScaling } from "../../../reconciler/scaling/decide-scaling.ts";
import { decideShrink } from "../../../reconciler/scaling/shrink.ts";
import { gateOf } from "../gates/builders.ts";
import { group, type ZoneTraits } from "../builders.ts";
import { ago, LAST, NOW } from "./snapshots.ts";

const nameOf = (i: number): string => `z${i}`;
const follows = (i: number): Record<string, string> => ({ "grafana.com/rollout-downscale-leader": nameOf(i) });
const MIN_TIME = { labels: { "grafana.com/min-time-between-zones-downscale": "12h" } };

interface Counted {
  readonly zones: readonly ZoneWithPods[];
  /** How often the rules looked at a zone's name or, which costs more, at its pods. */
  readonly reads: () => number;
}

/** Counts how often this field of zones is read. */
function count(traits: readonly ZoneTraits[], looksAt: keyof ZoneWithPods = "name"): Counted {
  let reads = 0;
  const zones = group(...traits.map((zone, i) => ({ name: `z${i}`, ...zone }))).zones.map(
    (zone) =>
      new Proxy(zone, {
        get: (target, field, receiver) => {
          if (field === looksAt) reads++;
          return Reflect.get(target, field, receiver) as unknown;
        },
      }),
  );
  return { zones, reads: () => reads };
}

const scale = (zones: readonly ZoneWithPods[]): readonly Hold[] =>
  decideScaling({ zones, tracked: new Map(), now: NOW, facts: new Map(), clusterDomain: "x" }).scalingHolds;

const shrinkEach = (zones: readonly ZoneWithPods[]): Hold[] => {
  const all = { namespace: "test", name: "ingester", zones };
  const times = { zones, tracked: new Map<string, string>(), now: NOW };
  return zones.flatMap((zone) => {
    const why = decideShrink({ zone, replicas: 1 }, times, all);
    return why && why !== "outdated" ? [why] : [];
  });
};

const rollOut = (zones: readonly ZoneWithPods[]): Hold[] => {
  const decision = decideRollout({ namespace: "test", name: "ingester", zones });
  return decision?.action === "hold" ? [decision] : [];
};

const protect = (zones: readonly ZoneWithPods[]): Hold[] => {
  const content = parseBudget({
    kind: BUDGET_KIND,
    metadata: { name: "b" },
    spec: { selector: { matchLabels: { a: "b" } } },
  });
  const reservations = Object.fromEntries(
    zones.map(({ name }) => [`${name}-0`, { uid: "u", time: new Date(NOW).toISOString(), by: "x" }]),
  );
  assert.equal(
    describeProtection({ content, generation: 1, zones, reservations, guard, earlier: {}, now: NOW }).zones.length,
    zones.length,
  );
  return [];
};

const gate = (zones: readonly ZoneWithPods[]): Hold[] => {
  const view = { identity: identityOf(zones), zones, now: NOW };
  const [last] = zones.slice(-1);
  const held = last && judgeGates([gateOf()], view).holds.get(last.uid);
  return held ? [held] : [];
};

const SICK: ZoneTraits = { pods: { 0: { ready: false }, 1: { ready: false } } };
const many = (n: number, traits: (i: number) => ZoneTraits): ZoneTraits[] =>
  Array.from({ length: n }, (_, i) => traits(i));

type Case = readonly [
  name: string,
  traits: (n: number) => ZoneTraits[],
  decide: (zones: readonly ZoneWithPods[]) => readonly Hold[],
  holds: number,
  looksAt?: keyof ZoneWithPods,
];

const CASES: readonly Case[] = [
  ["a cycle of all zones", (n) => many(n, (i) => ({ annotations: follows((i + 1) % n) })), scale, 1],
  [
    "a chain that leads to a cycle",
    (n) => many(n, (i) => ({ annotations: follows(Math.min(i + 1, n - 2)) })),
    scale,
    1,
  ],
  ["a chain without a cycle", (n) => many(n, (i) => (i === 0 ? {} : { annotations: follows(i - 1) })), scale, 0],
  [
    "followers that wait for the time between zones",
    (n) =>
      many(n, (i) => (i === 0 ? { replicas: 2 } : { ...MIN_TIME, annotations: { ...follows(0), [LAST]: ago(1) } })),
    scale,
    0.9,
  ],
  ["zones that wait to shrink beside sick ones", (n) => many(n, () => SICK), shrinkEach, 1, "pods"],
  ["a rollout beside sick zones", (n) => many(n, () => ({ ...SICK, at: "prev" })), rollOut, 0.0001],
  ["a rollout that waits for a gate", (n) => many(n, (i) => (i < n / 2 ? {} : { at: "prev" })), gate, 0.002],
  ["zones under a budget", (n) => many(n, () => SICK), protect, 0, "uid"],
];

/** Of the API server for an Event's message. */
const MAX_MESSAGE_LENGTH = 1024;

const guard = { state: "guarded", reason: "Guarded", message: "", remedy: "" } as const;

describe("a group of ten times as many zones costs about ten times as much, and its messages stay short:", () => {
  for (const [name, traits, decide, share, looksAt] of CASES)
    it(name, () => {
      const [small, large] = [count(traits(100), looksAt), count(traits(1000), looksAt)];
      decide(small.zones);
      const holds = decide(large.zones);
      assert.ok(
        large.reads() <= 15 * (small.reads() + 1),
        `${small.reads()} looks at 100 zones, ${large.reads()} at 1,000`,
      );
      assert.ok(holds.length >= share * 1000 - 1, `${holds.length} holds`);
      for (const { message, dedupKey = "" } of holds) {
        assert.ok(message.length <= MAX_MESSAGE_LENGTH, message);
        assert.ok(dedupKey.length <= MAX_MESSAGE_LENGTH, dedupKey);
      }
    });
});

describe("the message of a cycle", () => {
  const messages = (n: number, next: (i: number) => number): string[] =>
    scale(count(many(n, (i) => ({ annotations: follows(next(i)) }))).zones).map(({ message }) => message);

  it("names all of a short way, from the zone itself", () => {
    assert.deepEqual(
      messages(4, (i) => [1, 2, 1, 0][i] ?? 0),
      [
        "leaders form a cycle: z0 follows z1 follows z2 follows z1",
        "leaders form a cycle: z1 follows z2 follows z1",
        "leaders form a cycle: z2 follows z1 follows z2",
        "leaders form a cycle: z3 follows z0 follows z1 follows z2 follows z1",
      ],
    );
  });

  it("names the first 10 of a long way, and counts the others", () => {
    const [first = ""] = messages(1000, (i) => (i + 1) % 1000);
    assert.match(first, /^leaders form a cycle: z0 follows z1 follows .* follows z9 and 990 more$/);
    const ten = messages(10, (i) => (i + 1) % 10)[0] ?? "";
    assert.match(ten, /follows z9 follows z0$/);
    const eleven = messages(11, (i) => (i + 1) % 11)[0] ?? "";
    assert.match(eleven, /follows z9 and 1 more$/);
  });
});
