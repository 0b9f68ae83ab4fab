/** The oracle against histories that it must condemn, and those next to them that it must not. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { KubeObject, StoreEvent } from "../../emulator/store.ts";
import { NAMESPACE } from "../names.ts";
import { createWindowSafety } from "./safety.ts";
import { FREEZES, SPOILT } from "./shape.ts";

/** A full hour: the window is open for two minutes. */
const START = Date.parse("2026-06-01T12:00:00Z");
const MINUTE = 60_000;
const ZONE = "ingester-zone-a";
const WINDOW = { "zonewise.dev/rollout-window": "drawn" };
/** Open since 12 May, until a minute past noon. */
const WEEKS = {
  "zonewise.dev/rollout-window": "0 0 0 12 5 *",
  "zonewise.dev/rollout-window-duration": `${20 * 86_400 + 43_260}s`,
};
const FROZEN = { [FREEZES]: "2026-06-01T12:00:00Z/2026-06-01T12:10:00Z" };

const object = (name: string, more: object = {}): KubeObject => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: {
    name,
    namespace: NAMESPACE,
    uid: name,
    resourceVersion: "1",
    creationTimestamp: "2026-06-01T11:00:00Z",
    labels: { "controller-revision-hash": "b" },
    ...more,
  },
  status: { conditions: [{ type: "Ready", status: "True" }] },
});
const setWith = (annotations: object, status: object = { currentRevision: "a", updateRevision: "b" }): KubeObject => ({
  ...object(ZONE, { annotations }),
  spec: { replicas: 3 },
  status,
});
const taken = (pod: KubeObject): StoreEvent => ({
  type: "MODIFIED",
  resource: "pods",
  object: { ...pod, metadata: { ...pod.metadata, deletionTimestamp: "2026-06-01T12:04:00Z" } },
  previous: pod,
});

interface Play {
  readonly set?: KubeObject;
  readonly pod?: KubeObject;
  /** Minutes after the full hour. */
  readonly at?: number;
  readonly by?: string;
  /** Minutes after the full hour at which the set was written; before it by default. */
  readonly written?: number;
}

function play({
  set = setWith(WINDOW),
  pod = object(`${ZONE}-0`),
  at = 3.5,
  by = "reconciler-1",
  written = -10,
}: Play): string {
  let now = START - 30 * MINUTE;
  const violations: string[] = [];
  const safety = createWindowSafety({
    violated: (what) => void violations.push(what),
    now: () => now,
    setOf: () => set,
    decidedMs: () => 150_000,
  });
  safety.onEvent({ type: "ADDED", resource: "statefulsets.apps", object: setWith({}) }, undefined);
  now = START + written * MINUTE;
  safety.onEvent({ type: "MODIFIED", resource: "statefulsets.apps", object: set }, undefined);
  now = START + at * MINUTE;
  safety.onEvent(taken(pod), { actor: by, call: "DELETE pods/x" });
  return violations.join();
}

describe("the oracle of windows", () => {
  const REVERTED = setWith(WINDOW, { currentRevision: "a", updateRevision: "a" });
  const TABLE: readonly (readonly [name: string, given: Play, says: RegExp])[] = [
    ["a pod taken outside the window", {}, /ingester-zone-a-0 is taken by reconciler-1 outside the window/],
    ["a pod taken in the window", { at: 1 }, /^$/],
    ["a pod taken right after its end, by a clock that is behind", { at: 2.5 }, /^$/],
    ["a pod taken right before its start, by a clock that is ahead", { at: 4.5 }, /^$/],
    ["a pod that somebody else takes", { by: "human" }, /^$/],
    ["a pod that is not ready", { pod: { ...object(`${ZONE}-0`), status: {} } }, /^$/],
    ["a zone that was given its window lately", { written: 2 }, /^$/],
    ["a zone without a window", { set: setWith({}) }, /^$/],
    ["the way back of a template", { set: REVERTED }, /^$/],
    [
      "a pod that is older than its StatefulSet, which was created again: no way back",
      { set: REVERTED, pod: object(`${ZONE}-0`, { creationTimestamp: "2026-06-01T10:00:00Z" }) },
      /outside the window/,
    ],
    ["a pod taken in a freeze", { set: setWith(FROZEN), at: 1 }, /is taken by reconciler-1 in a freeze/],
    ["a pod taken after a window of weeks", { set: setWith(WEEKS) }, /outside the window/],
    ["a pod taken at its end, by a clock that is behind", { set: setWith(WEEKS), at: 1.5 }, /^$/],
    ["a pod taken after a freeze", { set: setWith(FROZEN), at: 11 }, /^$/],
    ...SPOILT.map(
      (spoilt) =>
        [`a pod taken under ${JSON.stringify(spoilt)}`, { set: setWith(spoilt), at: 1 }, /nobody can read/] as const,
    ),
    ["a pod taken under what was spoilt lately", { set: setWith(SPOILT[0] ?? {}), at: 1, written: 0 }, /^$/],
  ];
  for (const [name, given, says] of TABLE)
    it(`${says.source === "^$" ? "accepts" : "condemns"} ${name}`, () => assert.match(play(given), says));
});
