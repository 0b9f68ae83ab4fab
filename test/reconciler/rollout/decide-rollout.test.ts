import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { planGroup } from "../../../reconciler/plan/plan-group.ts";
import { withBudget } from "../../cli/decide/worlds.ts";
import { PARTITIONS } from "../../builders/budgets.ts";
import { objectsOf } from "../../builders/groups.ts";
import { LAST, OLD, PREVIOUS, traitsOf, type ZoneScene, type ZoneTraits } from "../../builders/zones.ts";
import { decide, decideNext } from "./adapter.ts";

const none = { replicas: 0 };
const noneOld: ZoneTraits = { replicas: 0, currentRevision: PREVIOUS };
const paused = { annotations: { "grafana.com/rollout-paused": "true" } };
const crashing = { broken: "CrashLoopBackOff" };

const TABLE: readonly [string, ZoneScene[], string][] = [
  ["a zone with RollingUpdate", [{ updateStrategy: "RollingUpdate" }, "nnn"], "hold UpdateStrategyNotOnDelete"],
  ["both zones unready by status", ["ooo ready 2", "ooo ready 2"], "hold MultipleZonesNotReady"],
  [
    "both zones with a terminating pod that status does not know of",
    ["o-oo ready 3", "oo-o ready 3"],
    "hold MultipleZonesNotReady",
  ],
  [
    "one zone unready by status, the other by a terminating pod",
    ["ooo ready 2", "oo-o ready 3"],
    "hold MultipleZonesNotReady",
  ],
  ["all pods updated", ["nnn", "nnn"], "settled"],
  ["only zone b outdated", ["nnn", "ooo"], "delete b-0 b-1"],
  ["both zones outdated", ["ooo", "ooo"], "delete a-0 a-1"],
  [
    "max-unavailable is not a number",
    [{ ...OLD, annotations: { "rollout-max-unavailable": "xxx" } }, "ooo"],
    "delete a-0",
  ],
  ["zone b is not ready and goes first", ["ooo", "ooo ready 2"], "delete b-0"],
  ["zone b has the maximum unavailable", ["nnn", "ooo ready 1"], "hold MaxUnavailableReached"],
  ["a terminating pod uses one of the places", ["o-oo ready 3", "nnn"], "delete a-1"],
  ["a finished zone", [{ currentRevision: PREVIOUS }, "nnn"], "finish a"],
  ["updated, but not ready by status", [{ currentRevision: PREVIOUS, statusReady: 1 }, "nnn"], "hold ZoneNotReady"],
  ["updated, but a pod is missing", [{ currentRevision: PREVIOUS, pods: { 2: null } }, "nnn"], "hold ZoneNotReady"],
  ["zone a updated but not ready, zone b outdated", ["nnn ready 2", "ooo"], "hold ZoneNotReady"],
  ["zone a updated with a terminating pod unseen by status", ["n-nn ready 3", "ooo"], "hold ZoneNotReady"],
  ["zone a without a pod in the list", ["... ready 3", "ooo"], "hold ZoneNotReady"],
  ["zones of different size, nothing scaled: the rollout goes on", ["nn", "ooo"], "delete b-0 b-1"],
  ["zone a paused and outdated", ["ooo paused", "nnn"], "hold ZonePaused"],
  ["zone a paused, zone b outdated", ["nnn paused", "ooo"], "delete b-0 b-1"],
  ["zone a paused and outdated, zone b outdated", ["ooo paused", "ooo"], "delete b-0 b-1"],
  ["paused is false", [{ ...OLD, annotations: { "grafana.com/rollout-paused": "false" } }, "nnn"], "delete a-0 a-1"],
  ["a revert: revisions are equal, pods are not", [{ pods: { 1: { revision: PREVIOUS } } }, "nnn"], "delete a-1"],
  ["no current revision", [{ ...OLD, currentRevision: "" }, "nnn"], "hold RevisionUnknown"],
  ["no update revision", [{ updateRevision: "", currentRevision: "x" }, "nnn"], "hold RevisionUnknown"],
  ["a paused zone may lack them", [{ currentRevision: "", ...paused }, "ooo"], "delete b-0 b-1"],
  [
    "a paused zone that is not ready holds the others (design: all zones must be healthy)",
    ["nnn ready 2 paused", "ooo"],
    "hold OtherZoneNotReady",
  ],
  ["also by a pod that status does not know of", ["nnn! ready 3 paused", "ooo"], "hold OtherZoneNotReady"],
  ["nor is the group settled, though the others are", ["nnn ready 2 paused", "nnn"], "hold ZoneNotReady"],
  [
    "a paused zone whose pod cannot be created holds the others, although all that its status counts are ready",
    ["nn. counts 2 paused", "ooo"],
    "hold OtherZoneNotReady",
  ],
  ["nor is the group settled then", ["nn. counts 2 paused", "nnn"], "hold ZoneNotReady"],
  ["§1.5.1 a paused zone that is not recorded", [{ currentRevision: PREVIOUS, ...paused }, "nnn"], "hold ZonePaused"],
  [
    "another zone has a pod beyond its replicas, which is about to go",
    ["ooo", "nnnn of 3 counts 4"],
    "hold OtherZoneNotReady",
  ],
  [
    "another zone has such a pod, and its status does not show it",
    ["ooo", "nnnn of 3 ready 3"],
    "hold OtherZoneNotReady",
  ],
  ["another zone has such a pod in place of one that is missing", ["ooo", ".nnn of 3"], "hold ZoneNotReady"],
  [
    "another zone has a new first ordinal, and its last pod has yet to be made",
    ["ooo", { start: 1 }],
    "hold ZoneNotReady",
  ],
  [
    "another zone does not begin at 0",
    ["ooo", { start: 2, pods: { 0: null, 1: null, 3: {}, 4: {} } }],
    "delete a-0 a-1",
  ],
  ["another zone has such a pod, which never served", ["ooo", "nnnn! of 3 counts 4"], "delete a-0 a-1"],
  ["another zone has such a pod, which has been ready", ["ooo", "nnnn? of 3 counts 4"], "hold ZoneNotReady"],
  ["another zone has such a pod, of which one container works", ["ooo", "nnnn~ of 3"], "hold ZoneNotReady"],
  [
    "two zones have such pods, which never served",
    [
      "oooox of 3 counts 4",
      { ...OLD, statusReplicas: 4, statusReady: 3, pods: { 3: { ready: false, terminating: true } } },
    ],
    "delete a-0 a-1",
  ],
  ["the zone itself has such a pod", ["oooo of 3 counts 4", "nnn"], "delete a-0 a-1"],
  ["a pod without a revision label is outdated", [{ pods: { 1: { revision: "" } } }, "nnn"], "delete a-1"],
  ["more places than pods", ["ooo max 10", "nnn"], "delete a-0 a-1 a-2"],
  [
    "the status lags behind the spec (design: stale status)",
    ["ooo", { ...OLD, generation: 2, observedGeneration: 1 }],
    "hold StatusNotObserved",
  ],
  ["a zone that is being deleted, outdated", [{ ...OLD, terminating: true }, "nnn"], "hold ZoneTerminating"],
  ["another zone is being deleted", ["ooo", { terminating: true }], "hold ZoneTerminating"],
  ["ready, but not for minReadySeconds yet", [{ minReadySeconds: 10, available: 2 }, "ooo"], "hold ZoneNotReady"],
  [
    "a pod is gone and its successor cannot be created: status counts one less (deviates from 1.4)",
    ["nn. counts 2", "ooo"],
    "hold ZoneNotReady",
  ],
  ["a closed readiness gate makes a pod not ready", ["n!nn ready 3", "ooo"], "hold ZoneNotReady"],
  ["a terminating pod that status does not know of still uses a place", ["oon- ready 3", "nnn"], "delete a-0"],

  // One zone, two zones, and zones of no pods (§1.14).
  ["one zone, settled", ["nnn"], "settled"],
  ["one zone, outdated", ["ooo"], "delete a-0 a-1"],
  ["one zone, its limit reached", ["n!n!o"], "hold MaxUnavailableReached"],
  ["one zone, paused", ["ooo paused"], "hold ZonePaused"],
  ["one zone, a pod that crashes", ["ooxo"], "delete a-1"],
  ["one zone of no pods", [none], "settled"],
  ["one zone of no pods, with a new template", [noneOld], "finish a"],
  ["two zones, both of no pods, with a new template", [noneOld, noneOld], "finish a"],
  ["two zones, both of no pods", [none, none], "settled"],
  ["a zone of no pods before one that is outdated", [none, "ooo"], "delete b-0 b-1"],
  ["a zone of no pods with a new template, before one", [noneOld, "ooo"], "finish a"],
  ["a zone of no pods after one that is outdated", ["ooo", none], "delete a-0 a-1"],
  [
    "a zone whose last pods are leaving, beside one that is outdated",
    ["nn of 0 counts 2", "ooo"],
    "hold OtherZoneNotReady",
  ],
  ["a paused zone of no pods with a new template", [{ ...noneOld, ...paused }, "nnn"], "hold ZonePaused"],
  ["a paused zone of no pods beside one that is outdated", [{ ...none, ...paused }, "ooo"], "delete b-0 b-1"],
  ["three zones, two of no pods", [none, "ooo", none], "delete b-0 b-1"],
];

describe("the rollout of a group", () => {
  for (const [name, zones, expected] of TABLE)
    it(`${name}: ${expected}`, () => assert.equal(decide(objectsOf(zones)), expected));
});

it("one decision deletes at most 50 pods, after which the zones are gathered again", () => {
  const large = { ...OLD, replicas: 120, annotations: { "rollout-max-unavailable": "100%" } };
  const lost = { ...large, statusReady: 0, pods: Array.from({ length: 120 }, () => crashing) };
  for (const zone of [large, lost]) assert.equal(decide(objectsOf([zone, "nnn"])).split("-").length, 51);
});

/** With the message of a hold, and what it names. */
const HOLDS: readonly [string, ZoneScene[], objects: string, message: RegExp, left?: ZoneTraits][] = [
  [
    "names what blocks, the StatefulSet first",
    [{ ...OLD, statusReady: 1, pods: { 1: { ready: false, revision: LAST }, 2: { terminating: true } } }, {}],
    "StatefulSet/a Pod/a-1 Pod/a-2",
    /^ingester-zone-a-1: not ready, ingester-zone-a-2: terminating/,
  ],
  [
    "names the strategy",
    [{ updateStrategy: "RollingUpdate" }],
    "StatefulSet/a",
    /ingester-zone-a has RollingUpdate update strategy/,
  ],
];

describe("a hold", () => {
  for (const [name, zones, objects, message, left] of HOLDS)
    it(name, () => {
      const decision = decideNext(objectsOf(zones, left));
      assert.ok(decision?.action === "hold");
      const named = decision.objects.map(({ kind, name }) => `${kind}/${name.replace("ingester-zone-", "")}`);
      assert.equal(named.join(" "), objects);
      assert.match(decision.message, message);
    });
});

describe("few zones under a budget of one pod", () => {
  const TABLE: readonly (readonly [name: string, zones: ZoneScene[], spec: object, expected: string])[] = [
    ["two zones roll out", ["ooo", "ooo"], {}, "settled"],
    ["a zone rolls out beside one of no pods", ["ooo", none], {}, "settled"],
    ["one zone does not, as the budget wants two", ["ooo"], {}, "blocked BudgetUnusable"],
    ["two zones roll out by partition", ["ooo", "ooo"], PARTITIONS, "settled"],
    ["by partition a zone of no pods counts as one that is missing", ["ooo", none], PARTITIONS, "blocked BudgetSpent"],
  ];
  for (const [name, zones, spec, expected] of TABLE)
    it(`${name}: ${expected}`, () => {
      const { end, holds } = planGroup(withBudget(zones.map(traitsOf), { maxUnavailable: 1, ...spec }), 100);
      assert.equal([end, ...holds.map(({ reason }) => reason)].join(" "), expected);
    });
});
