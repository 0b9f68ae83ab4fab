/** The oracle of RolloutGroups as they are written, against histories that it must condemn and those next to them. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { timestamp } from "../../emulator/objects.ts";
import type { KubeObject } from "../../emulator/store.ts";
import { createGroupWrites } from "./group-writes.ts";
import { NAMESPACE } from "../names.ts";

const GROUPS = "rolloutgroups.zonewise.dev";
const LEASES = "leases.coordination.k8s.io";
const ZONES = "/apis/apps/v1/namespaces/zonewise/statefulsets?limit=500";
const START = Date.UTC(2026, 0, 1);

interface Tools {
  readonly wait: (ms: number) => void;
  readonly list: (actor?: string) => void;
  /** The group is written with this status; `make` makes it anew, `edit` changes its spec. */
  readonly write: (status: object, actor?: string) => void;
  readonly make: (actor: string, owner?: string) => void;
  readonly edit: () => void;
  /** The spec of the zone changes. */
  readonly editZone: () => void;
  readonly remove: (actor?: string) => void;
  readonly takeLease: () => void;
}

const ROW = {
  name: "a",
  replicas: 1,
  updated: 1,
  ready: 1,
  generation: 1,
  observedGeneration: 1,
  currentRevision: "x",
  updateRevision: "x",
};
const isReady = (status: "True" | "False") => [{ type: "Ready", status }];
const READY = { phase: "Ready", conditions: isReady("True"), zones: [ROW] };
const WAITS = { phase: "Waiting", conditions: isReady("False"), zones: [ROW] };
const steppedAt = (ms: number): object => ({ ...WAITS, progress: { lastStepTime: timestamp(START + ms) } });

function judge(play: (tools: Tools) => void): string {
  const violations: string[] = [];
  let at = START + 120_000;
  let [version, generation, status] = [1, 1, {}];
  const object = (name: string, more: object): KubeObject => ({
    apiVersion: "v1",
    kind: "Any",
    metadata: {
      name,
      namespace: NAMESPACE,
      uid: name,
      resourceVersion: String(version++),
      creationTimestamp: timestamp(START),
      generation,
    },
    ...more,
  });
  const oracle = createGroupWrites({
    violated: (what) => void violations.push(what),
    now: () => at,
    isQuiet: () => true,
    setOf: (zone) => (zone === "a" ? set : undefined),
  });
  let set = object("a", {});
  let group = object("ingester", {});
  let ownerReferences: KubeObject["metadata"]["ownerReferences"];
  const store = (type: "ADDED" | "MODIFIED" | "DELETED", actor: string): void => {
    const previous = group;
    const made = object("ingester", { status });
    group = { ...made, metadata: { ...made.metadata, ...(ownerReferences && { ownerReferences }) } };
    const event = { type, resource: GROUPS, object: group, ...(type === "MODIFIED" && { previous }) };
    oracle.onEvent(event, { actor, call: "" });
  };
  const US = "reconciler-1";
  play({
    wait: (ms) => void (at += ms),
    list: (actor = US) => oracle.onAnswered({ actor, call: "", sentAt: at }, "GET", ZONES, "", 200),
    write: (next, actor = US) => ((status = next), store("MODIFIED", actor)),
    make: (actor, owner) => {
      status = {};
      ownerReferences =
        owner === undefined ? [] : [{ apiVersion: "apps/v1", kind: "StatefulSet", name: "a", uid: owner }];
      store("ADDED", actor);
    },
    edit: () => (generation++, store("MODIFIED", "human")),
    editZone: () => {
      const previous = set;
      set = { ...set, metadata: { ...set.metadata, generation: (set.metadata.generation ?? 0) + 1 } };
      oracle.onEvent({ type: "MODIFIED", resource: "statefulsets.apps", object: set, previous }, undefined);
    },
    remove: (actor = US) => store("DELETED", actor),
    takeLease: () =>
      oracle.onEvent(
        { type: "MODIFIED", resource: LEASES, object: object("lease", { spec: { holderIdentity: `${US}_x` } }) },
        { actor: US, call: "" },
      ),
  });
  return violations.join("; ");
}

const counted = (reconciles: number): object => ({ ...WAITS, totals: { reconciles } });
const failing = (status: object): object => ({ ...status, totals: { failing: true } });
const asOf = (generation: number): object => ({ ...WAITS, zones: [{ ...ROW, generation }] });

const CASES: readonly (readonly [name: string, play: (tools: Tools) => void, says: RegExp])[] = [
  [
    "a phase that its condition does not share",
    ({ write }) => write({ ...WAITS, phase: "Ready" }),
    /is Ready, and its condition Ready says otherwise/,
  ],
  [
    "a ready group with a zone that is not whole",
    ({ write }) => write({ ...READY, zones: [{ ...ROW, ready: 0 }] }),
    /is Ready, and tells of/,
  ],
  [
    "a ready group with a zone whose status is older than its spec",
    ({ write }) => write({ ...READY, zones: [{ ...ROW, generation: 2 }] }),
    /is Ready, and tells of/,
  ],
  [
    "a group that becomes ready by an error",
    ({ write }) => (write(WAITS), write(failing(READY))),
    /becomes Ready by a reconcile that has failed/,
  ],
  ["a group that was ready before it had an object, by an error", ({ write }) => write(failing(READY)), /^$/],
  [
    "a zone that is told of as it was before",
    ({ write }) => (write(asOf(3)), write({ ...asOf(2), message: "again" })),
    /reconciler-1 writes ingester with a as of generation 2, after 3/,
  ],
  ["counts that go back", ({ write }) => (write(counted(7)), write(counted(3))), /counts reconciles back, from 7 to 3/],
  [
    "a group that is made anew, and has the progress of an earlier one",
    ({ make, write }) => (make("reconciler-1"), write(steppedAt(-90_000))),
    /is made anew, and tells of a step long before its zones were made/,
  ],
  [
    "a group that its own zones have made anew, and has the progress of an earlier one",
    ({ make, write }) => (make("reconciler-1", "a"), write(steppedAt(-90_000))),
    /is made anew, and tells of a step long before its zones were made/,
  ],
  [
    "a group of the earlier zones, which a slow step has made again, and the garbage collector removes",
    ({ make, write }) => (make("reconciler-1", "earlier"), write(steppedAt(-90_000))),
    /^$/,
  ],
  [
    "a generation that was stored after the zones were listed",
    ({ list, wait, edit, write }) => (list(), wait(1), edit(), write({ ...WAITS, observedGeneration: 2 })),
    /reconciler-1 writes that ingester is as of generation 2, and has listed the zones before that/,
  ],
  [
    "a generation with a zone as it was before that",
    ({ list, wait, edit, editZone, write }) => {
      write(WAITS);
      editZone();
      edit();
      wait(1);
      list();
      write({ ...WAITS, observedGeneration: 2 });
    },
    /is as of generation 2, when a had 2, and tells of 1/,
  ],
  [
    "a new spec of the group of which a process says nothing",
    ({ list, wait, edit, write }) => (write(WAITS), edit(), wait(1), list(), wait(8001), list()),
    /reconciler-1 knows generation 2 of ingester, and says nothing of it/,
  ],
  [
    "a new spec of a zone of which a process says nothing",
    ({ list, wait, editZone, write }) => (write(READY), editZone(), wait(1), list(), wait(8001), list()),
    /reconciler-1 has listed a as of generation 2, and ingester says nothing of it/,
  ],
  [
    "somebody else's RolloutGroup that is deleted",
    ({ make, remove }) => (make("human"), remove()),
    /reconciler-1 deletes the RolloutGroup ingester, which human has made/,
  ],
];

const HARMLESS: readonly (readonly [name: string, play: (tools: Tools) => void])[] = [
  ["a group that is ready", ({ write }) => write(READY)],
  ["a ready group that stays so in spite of an error", ({ write }) => (write(READY), write(failing(READY)))],
  [
    "an older zone by another process, or by the next session of the same one",
    ({ write, takeLease }) => {
      write(asOf(3));
      write(asOf(2), "reconciler-2");
      takeLease();
      write({ ...asOf(2), message: "again" });
    },
  ],
  ["a group whose owners are written, and no status", ({ write }) => (write(asOf(3), "reconciler-2"), write(asOf(3)))],
  ["counts that grow", ({ write }) => (write(counted(3)), write(counted(7)))],
  ["a group that is made anew and goes on", ({ make, write }) => (make("reconciler-1"), write(steppedAt(100)))],
  [
    "a generation that was stored before the zones were listed",
    ({ list, wait, edit, write }) => (edit(), wait(1), list(), write({ ...WAITS, observedGeneration: 2 })),
  ],
  [
    "a generation with a zone as it was then",
    ({ list, wait, edit, editZone, write }) => {
      write(WAITS);
      edit();
      editZone();
      wait(1);
      list();
      write({ ...WAITS, observedGeneration: 2 });
    },
  ],
  [
    "a new spec of a zone of which its status tells",
    ({ list, wait, editZone, write }) => (editZone(), wait(1), list(), write(asOf(2)), wait(8001), list()),
  ],
  ["a new spec that was listed just now", ({ list, wait, edit }) => (edit(), wait(1), list(), wait(7000), list())],
  ["our own RolloutGroup that is deleted", ({ make, remove }) => (make("reconciler-2"), remove())],
  ["a RolloutGroup that its maker deletes", ({ make, remove }) => (make("human"), remove("human"))],
];

describe("the oracle of RolloutGroups", () => {
  for (const [name, play, says] of CASES) it(`condemns ${name}`, () => assert.match(judge(play), says));
  for (const [name, play] of HARMLESS) it(`does not condemn ${name}`, () => assert.equal(judge(play), ""));
});
