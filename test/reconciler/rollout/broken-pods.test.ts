import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { PREVIOUS, type ZoneTraits } from "../builders.ts";
import { crashing, decide, old, paused, updated } from "./table.ts";

const limping = { ...crashing, working: true };

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
    [{ ...old, statusReady: 0, pods: { 0: limping, 1: limping, 2: limping }, annotations: { "rollout-max-unavailable": "1" } }, updated],
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
    [{ ...old, replicas: 4, statusReady: 0, pods: { 0: { ...crashing, revision: "last" }, 1: limping, 2: limping, 3: limping } }, updated],
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
  ["broken pods are deleted before healthy ones, and alone", [{ ...old, statusReady: 2, pods: { 2: crashing } }, updated], "delete a-2"],
  [
    "not while another zone is degraded",
    [{ ...old, statusReady: 2, pods: { 1: crashing } }, { statusReady: 2 }],
    "hold MultipleZonesNotReady",
  ],
  ["not in a paused zone", [{ ...old, ...paused, statusReady: 2, pods: { 1: crashing } }, updated], "hold ZonePaused"],
  ["an updated pod that crash-loops is not deleted", [{ statusReady: 2, pods: { 1: crashing } }, old], "hold ZoneNotReady"],
  [
    "a pod that is merely not ready is left to recover",
    [{ ...old, statusReady: 2, pods: { 1: { ready: false } }, annotations: { "rollout-max-unavailable": "1" } }, updated],
    "hold MaxUnavailableReached",
  ],
  [
    "ready pods are deleted before one that is merely not ready",
    [{ ...old, statusReady: 2, pods: { 0: { ready: false } } }, updated],
    "delete a-1",
  ],
  [
    "one that is merely not ready is deleted last, if max-unavailable leaves a place",
    [{ statusReady: 2, pods: { 1: { ready: false, revision: PREVIOUS } } }, updated],
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

describe("broken pods first (design: deviates from 1.5.6)", () => {
  for (const [name, zones, expected] of BROKEN) it(`${name}: ${expected}`, () => assert.equal(decide(...zones), expected));
});
