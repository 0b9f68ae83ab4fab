import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { objectsOf } from "../../builders/groups.ts";
import { CREATED, LAST, OLD, PREVIOUS, type ZoneScene } from "../../builders/zones.ts";
import { decide } from "./adapter.ts";

const crashing = { broken: "CrashLoopBackOff" };
const limping = { ...crashing, working: true };
/** It runs, and has never been ready. */
const never = { ready: false };

const BROKEN: readonly [string, ZoneScene[], string][] = [
  ["an outdated crash-looping pod is replaced though its zone has no place left", ["ooxo max 1", "nnn"], "delete a-1"],
  ["all of a zone's crash-looping pods are deleted at once", ["oxoxox", "ooo"], "delete a-0 a-1 a-2"],
  [
    "of pods with only a crash-looping sidecar no more than the maximum unavailable are deleted",
    ["o~o~o~ max 1", "nnn"],
    "delete a-0",
  ],
  ["and none while one is being recreated", ["o~o~n! max 1", "nnn"], "hold MaxUnavailableReached"],
  ["and none once a replacement cannot start, either", ["n~o~o~ max 1", "nnn"], "hold MaxUnavailableReached"],
  ["and one more if the maximum allows it besides a replacement that cannot start", ["nxo~o~o~", "nnn"], "delete a-1"],
  [
    "a pod that is ready, but not for minReadySeconds yet, uses a place as well",
    [
      {
        ...OLD,
        minReadySeconds: 10,
        available: 0,
        statusReady: 1,
        pods: { 0: limping, 1: limping, 2: { revision: LAST } },
        annotations: { "rollout-max-unavailable": "1" },
      },
      "nnn",
    ],
    "hold MaxUnavailableReached",
  ],
  ["broken pods are deleted before healthy ones, and alone", ["ooox", "nnn"], "delete a-2"],
  ["also while another zone is degraded", ["ooxo", "nnn ready 2"], "delete a-1"],
  ["not in a paused zone", ["ooxo paused", "nnn"], "hold ZonePaused"],
  ["an updated pod that crash-loops is not deleted", ["nnxn", "ooo"], "hold ZoneNotReady"],
  [
    "a pod of a faulty template that runs and was never ready is replaced though it is the one that may be unavailable",
    ["oo!o max 1", "nnn"],
    "delete a-1",
  ],
  ["and so are all of them, at once", ["o!o!o! max 1", "nnn"], "delete a-0 a-1 a-2"],
  ["one that was ready until lately is replaced as well, alone", ["o?o?o max 1", "nnn"], "delete a-0"],
  ["and before one that is ready", ["ooo?", "nnn"], "delete a-2"],
  ["not beside a replacement that has yet to come up", ["n!o?o max 1", "nnn"], "hold MaxUnavailableReached"],
  ["one that was never ready is", ["n!o!o max 1", "nnn"], "delete a-1"],
  ...[
    "ImagePullBackOff",
    "ErrImagePull",
    "CreateContainerConfigError",
    "CreateContainerError",
    "RunContainerError",
    "InvalidImageName",
    "Failed",
    "Unschedulable",
  ].map((broken): [string, ZoneScene[], string] => [
    `${broken} is broken`,
    [{ ...OLD, statusReady: 2, pods: { 1: { broken } }, annotations: { "rollout-max-unavailable": "1" } }, "nnn"],
    "delete a-1",
  ]),
];

const rolling = { at: PREVIOUS, statusReady: 2 };

/**
 * Times are minutes after the pods turned unready: those that were never ready when they began, at 00:00; the others an
 * hour later.
 */
const ZONES: readonly [string, ZoneScene[], string, minutes?: number][] = [
  ["lost pods of every zone are replaced, one zone a step", ["oxoxox", "oxoxox"], "delete a-0 a-1 a-2"],
  ["those of the next zone follow though the first has not come up", ["n!oo", "ooxo"], "delete b-1"],
  ["no pod that is ready goes with them", ["oxoo", "oo!o"], "delete a-0"],
  ["a pod of which one container works is left alone", ["o~oo", "oo~o"], "hold MultipleZonesNotReady"],
  ["a pod that was never ready is replaced in the first zone", ["o!oo", "oo!o"], "delete a-0"],
  ["and in the next one once its replacement has come up", ["noo", "oo!o"], "delete b-1"],
  ["not before", ["n!oo", "oo!o"], "hold MultipleZonesNotReady", 4.9],
  ["nor while it is being deleted", ["o-oo", "oo!o"], "hold MultipleZonesNotReady", 4.9],
  ["nor while it is missing", [".oo", "oo!o"], "hold MultipleZonesNotReady", 100],
  ["but after its time", ["n!oo", "oo!o"], "delete b-1", 5],
  ["a dead node in the first zone holds it no longer", ["o-oo", "oo!o"], "delete b-1", 5],
  [
    "after the way back nobody waits for a trial: the template is known",
    ["n!nn", { statusReady: 2, pods: { 1: { ...never, revision: PREVIOUS } } }],
    "delete b-1",
  ],
  ["a pod that was ready until lately is left to recover", ["o?oo", "oo?o"], "hold MultipleZonesNotReady", 64.9],
  ["for its time", ["o?oo", "oo?o"], "delete a-0", 65],
  ["pods that all wait for something else are replaced within the limit", ["o?o?o? max 1", "o?o?o?"], "delete a-0", 65],
  [
    "and no further one, however long the first takes with the new template",
    ["n!o?o? max 1", "o?o?o?"],
    "hold MultipleZonesNotReady",
    1000,
  ],
  [
    "a pod that its controller cannot make holds the cure of other zones no longer",
    [".oo counts 2", "oo!o"],
    "delete b-1",
    100,
  ],
  ["a lost pod is replaced while another zone shrinks", ["oxoo", "nnnn of 3 counts 4"], "delete a-0"],
  [
    "not in a zone whose revisions are unknown",
    [{ ...rolling, updateRevision: "", pods: { 0: crashing } }, "nnn"],
    "hold RevisionUnknown",
  ],
];

describe("broken pods first (§1.5.6)", () => {
  for (const [name, zones, expected] of BROKEN)
    it(`${name}: ${expected}`, () => assert.equal(decide(objectsOf(zones)), expected));
});

describe("pods that serve nothing, in several zones (§1.5.6)", () => {
  for (const [name, zones, expected, minutes = 0] of ZONES)
    it(`${name}: ${expected}`, () =>
      assert.equal(decide({ ...objectsOf(zones), now: CREATED + minutes * 60_000 }), expected));
});
