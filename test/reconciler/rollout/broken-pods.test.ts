import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { PREVIOUS, type ZoneTraits } from "../builders.ts";
import { crashing, decide, decideAt, old, paused, updated } from "./table.ts";

const limping = { ...crashing, working: true };
/** It runs, and has never been ready. */
const never = { ready: false };
/** It was ready, and is not any more. */
const recovering = { ready: false, restarts: 0 };
const one = { annotations: { "rollout-max-unavailable": "1" } };

const BROKEN: readonly [string, ZoneTraits[], string][] = [
  [
    "an outdated crash-looping pod is replaced though its zone has no place left",
    [{ ...old, statusReady: 2, pods: { 1: crashing }, annotations: { "rollout-max-unavailable": "1" } }, updated],
    "delete a-1",
  ],
  [
    "all of a zone's crash-looping pods are deleted at once",
    [{ ...old, statusReady: 0, pods: { 0: crashing, 1: crashing, 2: crashing } }, old],
    "delete a-0 a-1 a-2",
  ],
  [
    "of pods with only a crash-looping sidecar no more than the maximum unavailable are deleted",
    [
      {
        ...old,
        statusReady: 0,
        pods: { 0: limping, 1: limping, 2: limping },
        annotations: { "rollout-max-unavailable": "1" },
      },
      updated,
    ],
    "delete a-0",
  ],
  [
    "and none while one is being recreated",
    [
      {
        ...old,
        statusReady: 0,
        pods: { 0: limping, 1: limping, 2: { revision: "last", ready: false } },
        annotations: { "rollout-max-unavailable": "1" },
      },
      updated,
    ],
    "hold MaxUnavailableReached",
  ],
  [
    "and none once a replacement cannot start, either",
    [
      {
        ...old,
        statusReady: 0,
        pods: { 0: { ...limping, revision: "last" }, 1: limping, 2: limping },
        annotations: { "rollout-max-unavailable": "1" },
      },
      updated,
    ],
    "hold MaxUnavailableReached",
  ],
  [
    "and one more if the maximum allows it besides a replacement that cannot start",
    [
      {
        ...old,
        replicas: 4,
        statusReady: 0,
        pods: { 0: { ...crashing, revision: "last" }, 1: limping, 2: limping, 3: limping },
      },
      updated,
    ],
    "delete a-1",
  ],
  [
    "a pod that is ready, but not for minReadySeconds yet, uses a place as well",
    [
      {
        ...old,
        minReadySeconds: 10,
        available: 0,
        statusReady: 1,
        pods: { 0: limping, 1: limping, 2: { revision: "last" } },
        annotations: { "rollout-max-unavailable": "1" },
      },
      updated,
    ],
    "hold MaxUnavailableReached",
  ],
  [
    "broken pods are deleted before healthy ones, and alone",
    [{ ...old, statusReady: 2, pods: { 2: crashing } }, updated],
    "delete a-2",
  ],
  [
    "also while another zone is degraded",
    [{ ...old, statusReady: 2, pods: { 1: crashing } }, { statusReady: 2 }],
    "delete a-1",
  ],
  ["not in a paused zone", [{ ...old, ...paused, statusReady: 2, pods: { 1: crashing } }, updated], "hold ZonePaused"],
  [
    "an updated pod that crash-loops is not deleted",
    [{ statusReady: 2, pods: { 1: crashing } }, old],
    "hold ZoneNotReady",
  ],
  [
    "a pod of a faulty template that runs and was never ready is replaced though it is the one that may be unavailable",
    [{ ...old, statusReady: 2, pods: { 1: { ready: false } }, ...one }, updated],
    "delete a-1",
  ],
  [
    "and so are all of them, at once",
    [{ ...old, statusReady: 0, pods: { 0: never, 1: never, 2: never }, ...one }, updated],
    "delete a-0 a-1 a-2",
  ],
  [
    "one that was ready until lately is replaced as well, alone",
    [{ ...old, statusReady: 1, pods: { 0: recovering, 1: recovering }, ...one }, updated],
    "delete a-0",
  ],
  ["and before one that is ready", [{ ...old, statusReady: 2, pods: { 2: recovering } }, updated], "delete a-2"],
  [
    "not beside a replacement that has yet to come up",
    [{ ...old, statusReady: 1, pods: { 0: { ready: false, revision: "last" }, 1: recovering }, ...one }, updated],
    "hold MaxUnavailableReached",
  ],
  [
    "one that was never ready is",
    [{ ...old, statusReady: 1, pods: { 0: { ready: false, revision: "last" }, 1: never }, ...one }, updated],
    "delete a-1",
  ],
  ...[
    "ImagePullBackOff",
    "ErrImagePull",
    "CreateContainerConfigError",
    "CreateContainerError",
    "RunContainerError",
    "InvalidImageName",
    "Failed",
    "Unschedulable",
  ].map((broken): [string, ZoneTraits[], string] => [
    `${broken} is broken`,
    [{ ...old, statusReady: 2, pods: { 1: { broken } }, annotations: { "rollout-max-unavailable": "1" } }, updated],
    "delete a-1",
  ]),
];

const rolling = { at: PREVIOUS, statusReady: 2 };

/**
 * Times are minutes after the pods turned unready: those that were never ready when they began, at 00:00; the others an
 * hour later.
 */
const ZONES: readonly [string, ZoneTraits[], string, minutes?: number][] = [
  [
    "lost pods of every zone are replaced, one zone a step",
    [
      { ...old, statusReady: 0, pods: { 0: crashing, 1: crashing, 2: crashing } },
      { ...old, statusReady: 0, pods: { 0: crashing, 1: crashing, 2: crashing } },
    ],
    "delete a-0 a-1 a-2",
  ],
  [
    "those of the next zone follow though the first has not come up",
    [
      { ...rolling, pods: { 0: { ready: false, revision: "last" } } },
      { ...rolling, pods: { 1: crashing } },
    ],
    "delete b-1",
  ],
  [
    "no pod that is ready goes with them",
    [
      { ...rolling, pods: { 0: crashing } },
      { ...rolling, pods: { 1: never } },
    ],
    "delete a-0",
  ],
  [
    "a pod of which one container works is left alone",
    [
      { ...rolling, pods: { 0: limping } },
      { ...rolling, pods: { 1: limping } },
    ],
    "hold MultipleZonesNotReady",
  ],
  [
    "a pod that was never ready is replaced in the first zone",
    [
      { ...rolling, pods: { 0: never } },
      { ...rolling, pods: { 1: never } },
    ],
    "delete a-0",
  ],
  [
    "and in the next one once its replacement has come up",
    [
      { ...rolling, statusReady: 3, pods: { 0: { revision: "last" } } },
      { ...rolling, pods: { 1: never } },
    ],
    "delete b-1",
  ],
  [
    "not before",
    [
      { ...rolling, pods: { 0: { ready: false, revision: "last" } } },
      { ...rolling, pods: { 1: never } },
    ],
    "hold MultipleZonesNotReady",
    4.9,
  ],
  [
    "nor while it is being deleted",
    [
      { ...rolling, pods: { 0: { terminating: true } } },
      { ...rolling, pods: { 1: never } },
    ],
    "hold MultipleZonesNotReady",
    4.9,
  ],
  [
    "nor while it is missing",
    [
      { ...rolling, pods: { 0: null } },
      { ...rolling, pods: { 1: never } },
    ],
    "hold MultipleZonesNotReady",
    100,
  ],
  [
    "but after its time",
    [
      { ...rolling, pods: { 0: { ready: false, revision: "last" } } },
      { ...rolling, pods: { 1: never } },
    ],
    "delete b-1",
    5,
  ],
  [
    "a dead node in the first zone holds it no longer",
    [
      { ...rolling, pods: { 0: { terminating: true } } },
      { ...rolling, pods: { 1: never } },
    ],
    "delete b-1",
    5,
  ],
  [
    "after the way back nobody waits for a trial: the template is known",
    [
      { statusReady: 2, pods: { 0: never } },
      { statusReady: 2, pods: { 1: { ...never, revision: PREVIOUS } } },
    ],
    "delete b-1",
  ],
  [
    "a pod that was ready until lately is left to recover",
    [
      { ...rolling, pods: { 0: recovering } },
      { ...rolling, pods: { 1: recovering } },
    ],
    "hold MultipleZonesNotReady",
    64.9,
  ],
  [
    "for its time",
    [
      { ...rolling, pods: { 0: recovering } },
      { ...rolling, pods: { 1: recovering } },
    ],
    "delete a-0",
    65,
  ],
  [
    "pods that all wait for something else are replaced within the limit",
    [
      { ...rolling, ...one, statusReady: 0, pods: { 0: recovering, 1: recovering, 2: recovering } },
      { ...rolling, statusReady: 0, pods: { 0: recovering, 1: recovering, 2: recovering } },
    ],
    "delete a-0",
    65,
  ],
  [
    "and no further one, however long the first takes with the new template",
    [
      { ...rolling, ...one, statusReady: 0, pods: { 0: { ...never, revision: "last" }, 1: recovering, 2: recovering } },
      { ...rolling, statusReady: 0, pods: { 0: recovering, 1: recovering, 2: recovering } },
    ],
    "hold MultipleZonesNotReady",
    1000,
  ],
  [
    "a pod that its controller cannot make holds the cure of other zones no longer",
    [
      { ...rolling, statusReplicas: 2, pods: { 0: null } },
      { ...rolling, pods: { 1: never } },
    ],
    "delete b-1",
    100,
  ],
  [
    "a lost pod is replaced while another zone shrinks",
    [
      { ...rolling, pods: { 0: crashing } },
      { statusReplicas: 4, pods: { 3: {} } },
    ],
    "delete a-0",
  ],
  [
    "not in a zone whose revisions are unknown",
    [{ ...rolling, updateRevision: "", pods: { 0: crashing } }, updated],
    "hold RevisionUnknown",
  ],
];

describe("broken pods first (§1.5.6)", () => {
  for (const [name, zones, expected] of BROKEN)
    it(`${name}: ${expected}`, () => assert.equal(decide(...zones), expected));
});

describe("pods that serve nothing, in several zones (§1.5.6)", () => {
  for (const [name, zones, expected, minutes = 0] of ZONES)
    it(`${name}: ${expected}`, () =>
      assert.equal(decideAt(Date.parse("2026-01-01T00:00:00Z") + minutes * 60_000, ...zones), expected));
});
