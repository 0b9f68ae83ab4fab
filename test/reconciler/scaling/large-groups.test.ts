/** The largest group that is handled: a hold for each zone that waits, and messages that stay short. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Hold } from "../../../reconciler/model/decision.ts";
import { MAX_ZONES } from "../../../reconciler/model/too-many-zones.ts";
import type { ZoneWithPods } from "../../../reconciler/model/zone.ts";
import { decideRollout } from "../../../reconciler/rollout/decide-rollout.ts";
import { decideScaling } from "../../../reconciler/scaling/decide-scaling.ts";
import { decideShrink } from "../../../reconciler/scaling/shrink.ts";
import { group, type ZoneTraits } from "../builders.ts";
import { ago, LAST, NOW } from "./snapshots.ts";

const nameOf = (i: number): string => `z${i}`;
const follows = (i: number): Record<string, string> => ({ "grafana.com/rollout-downscale-leader": nameOf(i) });
const MIN_TIME = { labels: { "grafana.com/min-time-between-zones-downscale": "12h" } };

const many = (n: number, traits: (i: number) => ZoneTraits): readonly ZoneWithPods[] =>
  group(...Array.from({ length: n }, (_, i) => ({ name: nameOf(i), ...traits(i) }))).zones;

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

const SICK: ZoneTraits = { pods: { 0: { ready: false }, 1: { ready: false } } };

type Case = readonly [
  name: string,
  traits: (i: number) => ZoneTraits,
  decide: (zones: readonly ZoneWithPods[]) => readonly Hold[],
  holds: number,
];

const CASES: readonly Case[] = [
  ["a cycle of all zones", (i) => ({ annotations: follows((i + 1) % MAX_ZONES) }), scale, MAX_ZONES],
  [
    "a chain that leads to a cycle",
    (i) => ({ annotations: follows(Math.min(i + 1, MAX_ZONES - 2)) }),
    scale,
    MAX_ZONES,
  ],
  ["a chain without a cycle", (i) => (i === 0 ? {} : { annotations: follows(i - 1) }), scale, 0],
  [
    "followers that wait for the time between zones",
    (i) => (i === 0 ? { replicas: 2 } : { ...MIN_TIME, annotations: { ...follows(0), [LAST]: ago(1) } }),
    scale,
    MAX_ZONES - 1,
  ],
  ["zones that wait to shrink beside sick ones", () => SICK, shrinkEach, MAX_ZONES],
  ["a rollout beside sick zones", () => ({ ...SICK, at: "prev" }), rollOut, 0],
];

/** Of the API server for an Event's message. */
const MAX_MESSAGE_LENGTH = 1024;

describe(`a group of ${MAX_ZONES} zones holds each that waits, with short messages:`, () => {
  for (const [name, traits, decide, count] of CASES)
    it(name, () => {
      const holds = decide(many(MAX_ZONES, traits));
      assert.equal(holds.length, count);
      for (const { message, dedupKey = "" } of holds) {
        assert.ok(message.length <= MAX_MESSAGE_LENGTH, message);
        assert.ok(dedupKey.length <= MAX_MESSAGE_LENGTH, dedupKey);
      }
    });
});

describe("the message of a cycle", () => {
  const messages = (n: number, next: (i: number) => number): string[] =>
    scale(many(n, (i) => ({ annotations: follows(next(i)) }))).map(({ message }) => message);

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
    const [first = ""] = messages(MAX_ZONES, (i) => (i + 1) % MAX_ZONES);
    assert.match(first, /^leaders form a cycle: z0 follows z1 follows .* follows z9 and 23 more$/);
    const nine = messages(9, (i) => (i + 1) % 9)[0] ?? "";
    assert.match(nine, /follows z8 follows z0$/);
  });
});
