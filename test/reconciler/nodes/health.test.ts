import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { whyNotReturned, whyUnfit, whyWorkMissing, type ReturnedWork } from "../../../reconciler/nodes/health.ts";
import { orphanedZone } from "../../../reconciler/model/orphans.ts";
import { readPod } from "../../../reconciler/model/pod.ts";
import { readNodePod } from "../../../reconciler/nodes/node-pod.ts";
import { whyHeldByRollout } from "../../../reconciler/nodes/drainable.ts";
import { readZone } from "../../../reconciler/model/zone.ts";
import { LAST, PREVIOUS, leftBehind, statefulSetObject } from "../builders.ts";
import { at, busyNode, entry, MINUTE, NOW, pod } from "./fixture.ts";

describe("a node before its update", () => {
  for (const [title, pods, fit] of [
    ["is fit with healthy pods", [pod("a")], true],
    ["is fit with a pod that is starting", [pod("a", { ready: false })], true],
    ["is not fit with a pod in CrashLoopBackOff", [pod("a", { ready: false, waiting: "CrashLoopBackOff" })], false],
    [
      "is not fit with a pod whose image cannot be pulled",
      [pod("a", { ready: false, waiting: "ImagePullBackOff" })],
      false,
    ],
    ["is fit with a pod that is over", [pod("a", { ready: false, phase: "Failed" })], true],
  ] as const)
    it(title, () => assert.equal(whyUnfit(pods) === undefined, fit));
});

describe("a node after its reboot", () => {
  const updated = { current_version: "1.1.0", boot_reported_at: at(-5 * MINUTE) };
  const back = { bootId: "boot-2", readySince: NOW - 5 * MINUTE };
  const why = (node = {}, status = {}, stored = {}) =>
    whyNotReturned({
      now: NOW,
      node: busyNode("a", "MonitoringUpdate", "MonitoringUpdate", {
        node: { ...back, ...node },
        status: { ...updated, ...status },
      }),
      entry: entry("a", stored),
      minReadySeconds: 60,
    });

  for (const [title, node, status, stored, well] of [
    ["is well in a new boot, with the new version, Ready for long enough", {}, {}, {}, true],
    ["is not well in the old boot", { bootId: "boot-1" }, {}, {}, false],
    ["is not asked for its boot if that is not known", { bootId: "boot-1" }, {}, { bootId: "" }, true],
    ["is not well with the old version", {}, { current_version: "1.0.0" }, {}, false],
    ["is not well while it is not Ready", { ready: false }, {}, {}, false],
    ["is not well when it has been Ready for a moment", { readySince: NOW - 59_000 }, {}, {}, false],
    ["counts from the report if that came later", { readySince: 0 }, { boot_reported_at: at(-59_000) }, {}, false],
    [
      "counts from its phase where nothing was reported",
      { readySince: 0 },
      { boot_reported_at: null },
      { since: at(-59_000) },
      false,
    ],
    [
      "is not well when it is Ready since a moment of a clock that is some seconds ahead",
      { readySince: NOW + 59_000 },
      {},
      { since: at(-60_000) },
      false,
    ],
    [
      "counts from its phase where the host's clock was ahead when it became Ready",
      { readySince: NOW + 60 * MINUTE },
      {},
      { since: at(-59_000) },
      false,
    ],
    [
      "is well once that phase is old enough, whatever that clock said",
      { readySince: NOW + 60 * MINUTE },
      {},
      { since: at(-60_000) },
      true,
    ],
    [
      "is well then also if the report was dated ahead",
      {},
      { boot_reported_at: at(60 * MINUTE) },
      { since: at(-60_000) },
      true,
    ],
    [
      "is well once that phase is old enough",
      { readySince: 0 },
      { boot_reported_at: null },
      { since: at(-60_000) },
      true,
    ],
  ] as const)
    it(title, () => assert.equal(why(node, status, stored) === undefined, well, why(node, status, stored)));
});

describe("the work of a node after its reboot", () => {
  const set = { kind: "StatefulSet", namespace: "shop", name: "db", uid: "u", ready: 3 };
  const work = (rest: Partial<ReturnedWork>) => whyWorkMissing({ pods: [], owners: new Map(), drained: [], ...rest });
  const owners = (ready: number) => new Map([["rs-uid", { ...set, ready, desired: 3 }]]);
  const crashing = pod("a", { ready: false, waiting: "CrashLoopBackOff" });
  for (const [title, rest, back] of [
    ["is back on an empty node", {}, true],
    [
      "is not back while a DaemonSet's pod is not ready",
      { pods: [pod("a", { kind: "DaemonSet", ready: false })] },
      false,
    ],
    [
      "is not back with a pod that is broken here and healthy elsewhere",
      { pods: [crashing], owners: owners(2) },
      false,
    ],
    ["is back if that pod is broken everywhere", { pods: [crashing], owners: owners(0) }, true],
    [
      "is not back while a drained controller has fewer ready pods than before",
      { drained: [[set, { ...set, ready: 2, desired: 3 }]] },
      false,
    ],
    ["is back once it has as many, wherever they are", { drained: [[set, { ...set, ready: 3, desired: 3 }]] }, true],
    [
      "is back if the controller was scaled down meanwhile",
      { drained: [[set, { ...set, ready: 1, desired: 1 }]] },
      true,
    ],
    ["is back if the controller is gone", { drained: [[set, undefined]] }, true],
    [
      "is back if the controller is another one by now",
      { drained: [[set, { ...set, uid: "new", ready: 0, desired: 3 }]] },
      true,
    ],
  ] as const)
    it(title, () => assert.equal(work(rest as Partial<ReturnedWork>) === undefined, back));
});

describe("a rollout in progress", () => {
  const zone = (letter: string, rolling: boolean) =>
    readZone(statefulSetObject({ name: `ingester-zone-${letter}`, replicas: 3, ...(rolling && { statusReady: 2 }) }));
  const [a, b, rollingA, rollingB] = [zone("a", false), zone("b", false), zone("a", true), zone("b", true)];
  const noneB = (currentRevision: string) =>
    readZone(statefulSetObject({ name: "ingester-zone-b", replicas: 0, currentRevision }));
  const here = [pod("x", { owner: a.uid, kind: "StatefulSet" })];
  for (const [title, pods, zones, held] of [
    ["of another zone holds the node", here, [a, rollingB], true],
    ["of the node's own zone does not", here, [rollingA, b], false],
    ["of another zone does not hold nodes without pods of the group", [pod("y")], [a, rollingB], false],
    ["of no zone does not", here, [a, b], false],
    ["of the only zone of a group does not", here, [rollingA], false],
    ["of another zone that has no pods, and is not recorded yet, holds the node", here, [a, noneB(PREVIOUS)], true],
    ["of another zone that has no pods, once it is recorded, does not", here, [a, noneB(LAST)], false],
  ] as const)
    it(title, () => assert.equal(whyHeldByRollout(pods, zones, new Map()) !== undefined, held));

  const left = (ready: boolean) => {
    const pods = leftBehind({ name: "ingester-zone-c", pods: { 0: { ready } } }).map(readPod);
    const zoneLeft = orphanedZone("ingester-zone-c", pods, { owner: undefined, zones: [a, b] });
    return new Map([["test/ingester", [zoneLeft]]]);
  };
  const leftHere = (letter: string) => leftBehind({ name: `ingester-zone-${letter}` }).map(readNodePod);
  for (const [title, pods, zones, held] of [
    ["holds the node of pods that a StatefulSet has left behind", leftHere("c"), [a, rollingB], true],
    ["holds that of pods that their StatefulSet has still to adopt", leftHere("a"), [a, rollingB], true],
    ["does not hold that of pods that the rolling zone has still to adopt", leftHere("b"), [a, rollingB], false],
  ] as const)
    it(title, () => assert.equal(whyHeldByRollout(pods, zones, left(true)) !== undefined, held));

  for (const [title, pods, orphans, held] of [
    ["that has lost its StatefulSet and lacks a pod holds the node", here, left(false), true],
    ["does not once its pods are ready", here, left(true), false],
    ["does not hold nodes without pods of the group", [pod("y")], left(false), false],
    ["does not hold nodes that have its own pods alone", leftHere("c"), left(false), false],
  ] as const)
    it(`of another zone ${title}`, () => assert.equal(whyHeldByRollout(pods, [a, b], orphans) !== undefined, held));
});
