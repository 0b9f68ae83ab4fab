/** The oracle against histories that it must condemn, and those next to them that it must not. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { KubeObject, StoreEvent } from "../../emulator/store.ts";
import { NAMESPACE } from "../names.ts";
import { createBatchSafety } from "./safety.ts";

const ZONE = "ingester-zone-a";
const START = Date.parse("2026-06-01T12:00:00Z");
const SECOND = 1000;
/** What the world allows for between a decision and its effect. */
const DECIDED_MS = 15 * SECOND;

interface PodState {
  readonly revision?: string;
  readonly ready?: boolean;
  readonly restarts?: number;
  readonly crashes?: boolean;
}

const podOf = (ordinal: number, uid: string, { revision = "old", ready = true, restarts = 0, crashes }: PodState) => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: {
    name: `${ZONE}-${ordinal}`,
    namespace: NAMESPACE,
    uid,
    resourceVersion: "1",
    creationTimestamp: "2026-06-01T11:00:00Z",
    labels: { "controller-revision-hash": revision },
  },
  status: {
    conditions: [{ type: "Ready", status: ready ? "True" : "False" }],
    containerStatuses: [
      { restartCount: restarts, state: crashes ? { waiting: { reason: "CrashLoopBackOff" } } : { running: {} } },
    ],
  },
});

/** A zone of seven pods, whose template has just become a new one. */
function begin({ revision = "new", maxUnavailable = 4 } = {}) {
  const violations: string[] = [];
  const pods = new Map<string, KubeObject>();
  let now = START;
  const set: KubeObject = {
    apiVersion: "apps/v1",
    kind: "StatefulSet",
    metadata: { ...podOf(0, ZONE, {}).metadata, name: ZONE },
    spec: { replicas: 7 },
    status: { updateRevision: revision },
  };
  const safety = createBatchSafety({
    shape: { zones: [ZONE], maxUnavailable },
    violated: (what) => void violations.push(what),
    now: () => now,
    setOf: () => set,
    listPods: () => [...pods.values()],
    decidedMs: () => DECIDED_MS,
  });
  const tell = (event: StoreEvent, actor?: string): void =>
    safety.onEvent(event, actor === undefined ? undefined : { actor, call: "" });
  tell({ type: "ADDED", resource: "statefulsets.apps", object: set });
  const states = new Map<number, { readonly uid: string; readonly state: PodState }>();
  let uids = 0;
  function write(ordinal: number, state: PodState, type: "ADDED" | "MODIFIED" = "MODIFIED"): void {
    const uid = type === "ADDED" ? `uid-${uids++}` : (states.get(ordinal)?.uid ?? "");
    states.set(ordinal, { uid, state });
    const object = podOf(ordinal, uid, state);
    pods.set(object.metadata.name, object);
    tell({ type, resource: "pods", object });
  }
  for (let ordinal = 0; ordinal < 7; ordinal++) write(ordinal, {}, "ADDED");
  now += 60 * SECOND;
  return {
    said: () => violations.join("; "),
    wait: (seconds: number) => void (now += seconds * SECOND),
    write,
    take(ordinal: number, actor = "reconciler-1"): void {
      const { uid, state } = states.get(ordinal) ?? { uid: "", state: {} };
      const previous = podOf(ordinal, uid, state);
      const metadata = { ...previous.metadata, deletionTimestamp: "2026-06-01T12:00:00Z" };
      const object = { ...previous, metadata };
      pods.set(object.metadata.name, object);
      tell({ type: "MODIFIED", resource: "pods", object, previous }, actor);
    },
    /** Its successor comes up with the new template. */
    comeUp(ordinal: number, state: PodState = {}): void {
      const { uid, state: before } = states.get(ordinal) ?? { uid: "", state: {} };
      pods.delete(`${ZONE}-${ordinal}`);
      tell({ type: "DELETED", resource: "pods", object: podOf(ordinal, uid, before) });
      write(ordinal, { revision: "new", ready: false, ...state }, "ADDED");
      now += SECOND;
      write(ordinal, { revision: "new", ...state });
    },
  };
}

describe("the oracle of growing batches", () => {
  it("accepts one pod, then two, then four", () => {
    const zone = begin();
    for (const batch of [[0], [1, 2], [3, 4, 5, 6]]) {
      for (const ordinal of batch) zone.take(ordinal);
      for (const ordinal of batch) zone.comeUp(ordinal);
    }
    assert.equal(zone.said(), "");
  });

  it("condemns two pods at first", () => {
    const zone = begin();
    zone.take(0);
    zone.take(1);
    assert.match(zone.said(), /2 pods .* are missing .*, 1 are allowed after 0 that came up/);
  });

  it("condemns a third pod after one that came up", () => {
    const zone = begin();
    zone.take(0);
    zone.comeUp(0);
    for (const ordinal of [1, 2]) zone.take(ordinal);
    assert.equal(zone.said(), "");
    zone.take(3);
    assert.match(zone.said(), /3 pods .*, 2 are allowed after 1 that came up/);
  });

  it("condemns more than rollout-max-unavailable, whatever came up", () => {
    const zone = begin({ maxUnavailable: 1 });
    zone.take(0);
    zone.comeUp(0);
    for (const ordinal of [1, 2]) zone.take(ordinal);
    assert.match(zone.said(), /2 pods .*, 1 are allowed/);
  });

  const TROUBLE = [
    ["that lost its readiness", { ready: false }],
    ["that crashes", { ready: false, restarts: 3, crashes: true }],
    ["that has restarted, and is ready again", { restarts: 3 }],
  ] as const;
  for (const [name, state] of TROUBLE) {
    it(`condemns a batch beside a pod ${name}`, () => {
      const zone = begin();
      zone.take(0);
      zone.comeUp(0);
      zone.wait(2);
      zone.write(0, { revision: "new", ...state });
      zone.wait(60);
      for (const ordinal of [1, 2]) zone.take(ordinal);
      assert.match(zone.said(), /, 1 are allowed after 0 that came up/);
    });

    it(`accepts one that was decided before a pod ${name}`, () => {
      const zone = begin();
      zone.take(0);
      zone.comeUp(0);
      zone.wait(2);
      zone.write(0, { revision: "new", ...state });
      zone.wait(10);
      for (const ordinal of [1, 2]) zone.take(ordinal);
      assert.equal(zone.said(), "");
    });
  }

  it("accepts a batch beside a pod that was ready for less than a second", () => {
    const zone = begin();
    zone.take(0);
    zone.comeUp(0);
    zone.take(1);
    zone.comeUp(1);
    zone.write(1, { revision: "new", ready: false });
    zone.wait(60);
    zone.take(2);
    assert.equal(zone.said(), "");
  });

  it("accepts batches that grow again with the pods after it", () => {
    const zone = begin();
    zone.take(0);
    zone.comeUp(0, { restarts: 3 });
    zone.wait(60);
    zone.take(1);
    zone.comeUp(1);
    for (const ordinal of [2, 3]) zone.take(ordinal);
    assert.equal(zone.said(), "");
  });

  it("accepts pods that somebody else takes", () => {
    const zone = begin();
    for (const ordinal of [0, 1, 2]) zone.take(ordinal, "human");
    assert.equal(zone.said(), "");
  });

  it("judges by no template that a pod has already", () => {
    const zone = begin({ revision: "old" });
    for (const ordinal of [0, 1]) zone.take(ordinal);
    assert.equal(zone.said(), "");
  });
});
