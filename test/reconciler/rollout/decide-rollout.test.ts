import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { decideRollout } from "../../../reconciler/rollout/decide-rollout.ts";
import { group, PREVIOUS, type ZoneTraits } from "../builders.ts";
import { crashing, decide, old, paused, updated } from "./table.ts";

const TABLE: readonly [string, ZoneTraits[], string][] = [
  ["a zone with RollingUpdate", [{ updateStrategy: "RollingUpdate" }, updated], "hold UpdateStrategyNotOnDelete"],
  [
    "both zones unready by status",
    [
      { ...old, statusReady: 2 },
      { ...old, statusReady: 2 },
    ],
    "hold MultipleZonesNotReady",
  ],
  [
    "both zones with a terminating pod that status does not know of",
    [
      { ...old, pods: { 0: { terminating: true } } },
      { ...old, pods: { 1: { terminating: true } } },
    ],
    "hold MultipleZonesNotReady",
  ],
  [
    "one zone unready by status, the other by a terminating pod",
    [
      { ...old, statusReady: 2 },
      { ...old, pods: { 1: { terminating: true } } },
    ],
    "hold MultipleZonesNotReady",
  ],
  ["all pods updated", [updated, updated], "settled"],
  ["only zone b outdated", [updated, old], "delete b-0 b-1"],
  ["both zones outdated", [old, old], "delete a-0 a-1"],
  [
    "max-unavailable is not a number",
    [{ ...old, annotations: { "rollout-max-unavailable": "xxx" } }, old],
    "delete a-0",
  ],
  ["zone b is not ready and goes first", [old, { ...old, statusReady: 2 }], "delete b-0"],
  ["zone b has the maximum unavailable", [updated, { ...old, statusReady: 1 }], "hold MaxUnavailableReached"],
  ["a terminating pod uses one of the places", [{ ...old, pods: { 0: { terminating: true } } }, updated], "delete a-1"],
  ["a finished zone", [{ currentRevision: PREVIOUS }, updated], "finish a"],
  ["updated, but not ready by status", [{ currentRevision: PREVIOUS, statusReady: 1 }, updated], "hold ZoneNotReady"],
  ["updated, but a pod is missing", [{ currentRevision: PREVIOUS, pods: { 2: null } }, updated], "hold ZoneNotReady"],
  ["zone a updated but not ready, zone b outdated", [{ statusReady: 2 }, old], "hold ZoneNotReady"],
  [
    "zone a updated with a terminating pod unseen by status",
    [{ pods: { 0: { terminating: true } } }, old],
    "hold ZoneNotReady",
  ],
  ["zone a without a pod in the list", [{ pods: { 0: null, 1: null, 2: null } }, old], "hold ZoneNotReady"],
  ["zones of different size, nothing scaled: the rollout goes on", [{ replicas: 2 }, old], "delete b-0 b-1"],
  ["a leader that is larger than its follower", [updated, { ...old, replicas: 2 }], "delete b-0 b-1"],
  ["zone a paused and outdated", [{ ...old, ...paused }, updated], "hold ZonePaused"],
  ["zone a paused, zone b outdated", [paused, old], "delete b-0 b-1"],
  ["zone a paused and outdated, zone b outdated", [{ ...old, ...paused }, old], "delete b-0 b-1"],
  ["paused is false", [{ ...old, annotations: { "grafana.com/rollout-paused": "false" } }, updated], "delete a-0 a-1"],
  ["a revert: revisions are equal, pods are not", [{ pods: { 1: { revision: PREVIOUS } } }, updated], "delete a-1"],
  ["no current revision", [{ ...old, currentRevision: "" }, updated], "hold RevisionUnknown"],
  ["no update revision", [{ updateRevision: "", currentRevision: "x" }, updated], "hold RevisionUnknown"],
  ["a paused zone may lack them", [{ currentRevision: "", ...paused }, old], "delete b-0 b-1"],
  [
    "a paused zone that is not ready holds the others (design: all zones must be healthy)",
    [{ ...paused, statusReady: 2 }, old],
    "hold OtherZoneNotReady",
  ],
  [
    "also by a pod that status does not know of",
    [{ ...paused, pods: { 2: { ready: false } } }, old],
    "hold OtherZoneNotReady",
  ],
  ["nor is the group settled, though the others are", [{ ...paused, statusReady: 2 }, updated], "hold ZoneNotReady"],
  [
    "a paused zone whose pod cannot be created holds the others, although all that its status counts are ready",
    [{ ...paused, statusReplicas: 2, pods: { 2: null } }, old],
    "hold OtherZoneNotReady",
  ],
  [
    "nor is the group settled then",
    [{ ...paused, statusReplicas: 2, pods: { 2: null } }, updated],
    "hold ZoneNotReady",
  ],
  ["§1.5.1 a paused zone that is not recorded", [{ currentRevision: PREVIOUS, ...paused }, updated], "hold ZonePaused"],
  [
    "another zone has a pod beyond its replicas, which is about to go",
    [old, { statusReplicas: 4, pods: { 3: {} } }],
    "hold OtherZoneNotReady",
  ],
  [
    "another zone has such a pod, and its status does not show it",
    [old, { pods: { 3: {} } }],
    "hold OtherZoneNotReady",
  ],
  [
    "another zone has such a pod in place of one that is missing",
    [old, { pods: { 0: null, 3: {} } }],
    "hold ZoneNotReady",
  ],
  [
    "another zone has a new first ordinal, and its last pod has yet to be made",
    [old, { start: 1 }],
    "hold ZoneNotReady",
  ],
  ["another zone does not begin at 0", [old, { start: 2, pods: { 0: null, 1: null, 3: {}, 4: {} } }], "delete a-0 a-1"],
  [
    "another zone has such a pod, which never served",
    [old, { statusReplicas: 4, statusReady: 3, pods: { 3: { ready: false } } }],
    "delete a-0 a-1",
  ],
  [
    "another zone has such a pod, which has been ready",
    [old, { statusReplicas: 4, statusReady: 3, pods: { 3: { ready: false, restarts: 0 } } }],
    "hold ZoneNotReady",
  ],
  [
    "another zone has such a pod, of which one container works",
    [old, { pods: { 3: { ...crashing, working: true } } }],
    "hold ZoneNotReady",
  ],
  [
    "two zones have such pods, which never served",
    [
      { ...old, statusReplicas: 4, statusReady: 3, pods: { 3: crashing } },
      { ...old, statusReplicas: 4, statusReady: 3, pods: { 3: { ready: false, terminating: true } } },
    ],
    "delete a-0 a-1",
  ],
  [
    "the zone itself has such a pod",
    [{ ...old, statusReplicas: 4, pods: { 3: { revision: PREVIOUS } } }, updated],
    "delete a-0 a-1",
  ],
  ["a pod without a revision label is outdated", [{ pods: { 1: { revision: "" } } }, updated], "delete a-1"],
  ["a single zone rolls", [old], "delete a-0 a-1"],
  ["an empty zone is finished at once", [{ replicas: 0, currentRevision: PREVIOUS }, updated], "finish a"],
  [
    "more places than pods",
    [{ ...old, annotations: { "rollout-max-unavailable": "10" } }, updated],
    "delete a-0 a-1 a-2",
  ],
  [
    "the status lags behind the spec (design: stale status)",
    [old, { ...old, generation: 2, observedGeneration: 1 }],
    "hold StatusNotObserved",
  ],
  ["a zone that is being deleted, outdated", [{ ...old, terminating: true }, updated], "hold ZoneTerminating"],
  ["another zone is being deleted", [old, { terminating: true }], "hold ZoneTerminating"],
  ["ready, but not for minReadySeconds yet", [{ minReadySeconds: 10, available: 2 }, old], "hold ZoneNotReady"],
  [
    "a pod is gone and its successor cannot be created: status counts one less (deviates from 1.4)",
    [{ statusReplicas: 2, pods: { 2: null } }, old],
    "hold ZoneNotReady",
  ],
  ["a closed readiness gate makes a pod not ready", [{ pods: { 0: { ready: false } } }, old], "hold ZoneNotReady"],
  [
    "a terminating pod that status does not know of still uses a place",
    [{ ...old, pods: { 2: { revision: "last", terminating: true } } }, updated],
    "delete a-0",
  ],
];

describe("the rollout of a group", () => {
  for (const [name, zones, expected] of TABLE)
    it(`${name}: ${expected}`, () => assert.equal(decide(...zones), expected));
});

it("one decision deletes at most 50 pods, after which the zones are gathered again", () => {
  const large = { ...old, replicas: 120, annotations: { "rollout-max-unavailable": "100%" } };
  const lost = {
    ...large,
    statusReady: 0,
    pods: Object.fromEntries(Array.from({ length: 120 }, (_, i) => [i, crashing])),
  };
  for (const zone of [large, lost]) {
    const decision = decideRollout(group(zone, updated));
    assert.equal(decision?.action === "deletePods" && decision.pods.length, 50);
  }
});

describe("a hold", () => {
  it("names what blocks, the StatefulSet first", () => {
    const decision = decideRollout(
      group({ ...old, statusReady: 1, pods: { 1: { ready: false, revision: "last" }, 2: { terminating: true } } }, {}),
    );
    assert.equal(decision?.action, "hold");
    if (decision?.action !== "hold") return;
    assert.deepEqual(
      decision.objects.map((object) => `${object.kind}/${object.name}`),
      ["StatefulSet/ingester-zone-a", "Pod/ingester-zone-a-1", "Pod/ingester-zone-a-2"],
    );
    assert.match(decision.message, /^ingester-zone-a-1: not ready, ingester-zone-a-2: terminating/);
  });

  it("names the strategy", () => {
    const decision = decideRollout(group({ updateStrategy: "RollingUpdate" }));
    assert.match(
      decision?.action === "hold" ? decision.message : "",
      /ingester-zone-a has RollingUpdate update strategy/,
    );
  });
});
