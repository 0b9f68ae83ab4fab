/** A batch of deletions between two of its pods: why it ends, and which pods tell more. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { objectsOf } from "../../builders/groups.ts";
import { LAST, OLD, type ZoneScene, type ZoneTraits } from "../../builders/zones.ts";
import { followBatch, whyNotBegun, type BatchFacts } from "./adapter.ts";

/** Zone a loses its pod 1 next while zones b and c wait; `changes` of a, b and c since. */
const after = (...[a = {}, b = {}, c = {}]: readonly ZoneTraits[]): BatchFacts => ({
  judged: objectsOf([OLD, {}, {}]),
  now: { ...objectsOf([{ ...OLD, ...a }, b, c]), now: Date.parse("2026-06-01T12:00:00Z") },
  next: 1,
});

const PAUSED = { annotations: { "grafana.com/rollout-paused": "true" } };
const judgedAs = (...zones: readonly ZoneScene[]): Pick<BatchFacts, "judged"> => ({ judged: objectsOf(zones) });
const IDLE = { servesNothing: true };
const CHANGED = "zone-a was changed";
const UNWELL = "zone-b is no longer healthy";
const away = (count: number): string => `zone-a has ${count} unavailable pods already`;

const TABLE: readonly [string, BatchFacts, string | undefined][] = [
  ["nothing has changed", after(), undefined],
  ["its own deletions are visible", after({ statusReady: 2 }), undefined],
  ["its zone is paused", after(PAUSED), "zone-a was paused"],
  ["its zone has another spec", after({ generation: 2 }), CHANGED],
  [
    "its zone's bypass of gates is taken back or set",
    after({ annotations: { "zonewise.dev/bypass-gates-until": "2026-06-01T13:00:00Z" } }),
    CHANGED,
  ],
  ["its zone may lose fewer pods", after({ annotations: { "rollout-max-unavailable": "1" } }), CHANGED],
  [
    "acceleration of its zone is switched on or off",
    after({ annotations: { "zonewise.dev/rollout-accelerate": "true" } }),
    CHANGED,
  ],
  ["the maximum of its zone's pods is unavailable", after({ statusReady: 1 }), away(2)],
  ["pods of its zone are missing", after({ statusReady: 1, statusReplicas: 1 }), away(2)],
  [
    "the maximum is unavailable, and the next pod is one of them",
    { ...after({ statusReady: 1 }), ...judgedAs({ ...OLD, pods: { 1: { terminating: true } } }, {}, {}) },
    undefined,
  ],
  [
    "two pods of its zone are unavailable, beside three that it is not to have",
    after({ statusReplicas: 5, statusReady: 2 }),
    away(3),
  ],
  [
    "the same, and those never served and are about to go",
    {
      ...after({ statusReplicas: 5, statusReady: 2 }),
      ...judgedAs({ ...OLD, pods: { 3: { ready: false }, 4: { ready: false, terminating: true } } }, {}, {}),
    },
    undefined,
  ],
  ["its zone is being deleted", after({ terminating: true }), "zone-a is being deleted"],
  ["another zone is being deleted", after({}, {}, { terminating: true }), "zone-c is being deleted"],
  ["another zone has fewer ready pods", after({}, { statusReady: 2 }), UNWELL],
  ["another zone has fewer available pods", after({}, { minReadySeconds: 9, available: 2 }), UNWELL],
  [
    "another zone has fewer ready pods than replicas beside one that goes",
    after({}, { statusReplicas: 4, statusReady: 2 }),
    UNWELL,
  ],
  ["it serves nothing, and another zone has lost pods", { ...after({}, { statusReady: 0 }), ...IDLE }, undefined],
  ["it serves nothing, and its zone was paused", { ...after(PAUSED), ...IDLE }, "zone-a was paused"],
  ["another zone lacks a pod", after({}, { statusReplicas: 2 }), UNWELL],
  [
    "another zone has another spec",
    after({}, {}, { generation: 2, observedGeneration: 1 }),
    "zone-c is no longer healthy",
  ],
  [
    "another zone was recreated under its name",
    { ...after(), ...judgedAs(OLD, {}, { name: "x" }) },
    "the group has other zones than before",
  ],
  ["another zone was removed", { ...after(), now: objectsOf([OLD, {}]) }, "the group has other zones than before"],
];

/** A Monday; the window is open from two to three. */
const [CLOSED, OPEN] = [Date.parse("2026-06-01T00:00:00Z"), Date.parse("2026-06-01T02:59:59Z")];
const WINDOW = { annotations: { "zonewise.dev/rollout-window": "* * 2 * * *" } };
const FREEZE = { annotations: { "zonewise.dev/rollout-freezes": "2026-06-01T00:00:00Z/2026-06-02T00:00:00Z" } };
/** Its pod 1 has a template that was taken back. */
const REVERTED: ZoneTraits = {
  ...WINDOW,
  createdAt: "2026-05-01T00:00:00Z",
  pods: { 1: { revision: "taken-back", createdAt: "2026-05-31T00:00:00Z" } },
};

const inWindow = (at: number, changed: ZoneTraits, judged: ZoneTraits = {}): BatchFacts => ({
  judged: objectsOf([{ ...OLD, ...judged }, {}]),
  now: { ...objectsOf([{ ...OLD, ...changed }, {}]), now: at },
  next: 1,
});

const WINDOWS: readonly [string, BatchFacts, RegExp | undefined][] = [
  ["its window is open", inWindow(OPEN, WINDOW, WINDOW), undefined],
  ["its window closes", inWindow(OPEN + 1000, WINDOW, WINDOW), /is closed, and opens at 2026-06-02/],
  ["a window is set that is closed", inWindow(CLOSED, WINDOW), /is closed/],
  ["a freeze is set", inWindow(CLOSED, FREEZE), /a freeze lasts until 2026-06-02T00:00:00Z/],
  [
    "its window is closed, and the next pod is not ready",
    inWindow(CLOSED, WINDOW, { ...WINDOW, pods: { 1: { terminating: true } } }),
    undefined,
  ],
  [
    "its window is closed, and its template was taken back",
    inWindow(CLOSED, { ...REVERTED, at: LAST }, { ...REVERTED, at: LAST }),
    undefined,
  ],
];

describe("a batch of deletions", () => {
  for (const [name, facts, expected] of TABLE)
    it(`${name}: ${expected ?? "it goes on"}`, () =>
      assert.equal(followBatch(facts).why?.replaceAll("ingester-", ""), expected));
  for (const [name, facts, expected] of WINDOWS)
    it(`${name}: it ${expected ? "ends" : "goes on"}`, () => {
      const { why } = followBatch(facts);
      if (expected) assert.match(why ?? "", expected);
      else assert.equal(why, undefined);
    });

  const GROWS = { "rollout-max-unavailable": "8", "zonewise.dev/rollout-accelerate": "true" };
  const grown = (restarts: number): ZoneTraits => ({
    replicas: 9,
    annotations: GROWS,
    pods: Object.fromEntries([0, 1, 2].map((i) => [i, { revision: LAST, restarts }])),
  });
  const LESS: readonly [string, judged: ZoneTraits, now: ZoneTraits, lost: number | undefined][] = [
    ["its pods are as before", {}, {}, undefined],
    ["one of its pods terminates", {}, { pods: { 2: { terminating: true } } }, 1],
    ["one of its pods is no longer ready", {}, { pods: { 2: { ready: false } } }, 1],
    [
      "an updated pod fails in place of an outdated one",
      { pods: { 0: { ready: false } } },
      { pods: { 2: { revision: LAST, ready: false } } },
      1,
    ],
    ["its row of healthy pods is as before", grown(0), grown(0), undefined],
    ["its row of healthy pods has ended", grown(0), grown(1), 0],
  ];
  for (const [name, judged, now, lost] of LESS)
    it(`${name} before the first deletion: ${lost === undefined ? "it goes on" : "it does not begin"}`, () => {
      const why = whyNotBegun(objectsOf([{ ...OLD, ...judged }]), objectsOf([{ ...OLD, ...now }]));
      assert.equal(why, lost === undefined ? undefined : `ingester-zone-a has ${lost} unavailable pods now`);
    });
});

describe("before a further pod of a batch, pods are read", () => {
  const counts = (updatedReplicas: number, currentReplicas: number, updateRevision = "new"): ZoneTraits => ({
    status: { updatedReplicas, currentReplicas, currentRevision: "old", updateRevision },
  });
  const READS: readonly [string, ZoneTraits[], read: string, more?: Partial<BatchFacts>][] = [
    ["of a zone with more pods than replicas", [OLD, { statusReplicas: 4 }, {}], "b"],
    ["of no zone beside a pod that serves nothing", [OLD, { statusReplicas: 4 }, {}], "", IDLE],
    [
      "of zones whose status may hide a terminating one",
      [counts(0, 3), counts(3, 0), counts(2, 0), counts(1, 1), counts(1, 2)],
      "c d",
    ],
    [
      "where both revisions are one, and each pod is counted twice",
      [counts(2, 2, "old"), counts(2, 2, "old"), counts(2, 2, "old")],
      "b c",
    ],
  ];
  for (const [name, zones, read, more] of READS)
    it(name, () => {
      const { reads } = followBatch({ ...after(), now: objectsOf(zones), ...more });
      assert.equal(reads.map((zone) => zone.at(-1)).join(" "), read);
    });
});
