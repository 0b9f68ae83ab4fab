/** The oracle of lifecycle conditions against histories that it must condemn, and those next to them that it must not. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { MANAGED_LABEL } from "../../../reconciler/nodes/shadow.ts";
import type { KubeObject } from "../../emulator/store.ts";
import { createLifecycleSafety, type LifecycleSafety } from "./lifecycle-safety.ts";
import { OURS } from "./lifecycle.ts";
import { LEFT_OUT, POLICIES, SHADOWS } from "./shape.ts";

const [A, B] = ["node-a-1", "node-b-1"];
const RECONCILER = { actor: "reconciler-1", call: "PATCH x" };

const object = (name: string, fields: object, labels: object = {}): KubeObject => ({
  apiVersion: "v1",
  kind: "Any",
  metadata: { name, uid: name, resourceVersion: "1", creationTimestamp: "", labels: { ...labels } },
  ...fields,
});
type Said = readonly [type: string, reason: string];
const THEIRS: Said = ["MaintenanceInProgress", "Repair"];

function node(name: string, said: readonly Said[], { ready = true, labels = {} } = {}): KubeObject {
  const conditions = said.map(([type, reason]) => ({ type, status: "True", reason, message: "" }));
  const status = { conditions: [{ type: "Ready", status: ready ? "True" : "False" }, ...conditions] };
  return object(name, { status }, { [MANAGED_LABEL]: "x", [LEFT_OUT]: "false", ...labels });
}
const shadow = (name: string, state: string): KubeObject => object(`brs-${name}`, { spec: { state } });
const policy = (...active: readonly (readonly [node: string, phase: string])[]): KubeObject =>
  object("default", { status: { active: active.map(([name, phase]) => ({ node: name, phase })) } });

interface Tools extends LifecycleSafety {
  readonly store: (resource: string, object: KubeObject, by?: typeof RECONCILER) => void;
  readonly wait: (seconds: number) => void;
}

interface Given {
  readonly out?: readonly string[];
  readonly most?: number;
  readonly selective?: boolean;
  /** Passes come to their ends. */
  readonly steady?: boolean;
}

function judge({ out = [], most = 1, selective = false, steady = true }: Given, play: (tools: Tools) => void): string {
  const objects = new Map<string, KubeObject>();
  const violations: string[] = [];
  let now = 1_000_000;
  const oracle = createLifecycleSafety({
    nodes: { selective },
    violated: (what) => void violations.push(what),
    now: () => now,
    store: () => ({
      get: (resource, _, name) => objects.get(`${resource}/${name}`),
      list: (resource) => [...objects].flatMap(([key, one]) => (key.startsWith(`${resource}/`) ? [one] : [])),
    }),
    decidedMs: () => 150_000,
    isSteady: () => steady,
    out: () => ({ names: out, most }),
  });
  play({
    ...oracle,
    wait: (seconds) => void (now += seconds * 1000),
    store(resource, changed, by) {
      const key = `${resource}/${changed.metadata.name}`;
      const previous = objects.get(key);
      objects.set(key, changed);
      oracle.onEvent(
        previous
          ? { type: "MODIFIED", resource, object: changed, previous }
          : { type: "ADDED", resource, object: changed },
        by,
      );
    },
  });
  return violations.join("; ");
}

/** Somebody works on a node, and so many seconds later a reconciler wants the next state of another or the same. */
const wanting =
  (of: string, states: readonly [string, string], on: KubeObject, seconds = 300) =>
  ({ store, wait }: Tools): void => {
    store("nodes", node(A, []));
    store("nodes", node(B, []));
    store("nodes", on);
    store(SHADOWS, shadow(of, states[0]));
    wait(seconds);
    store(SHADOWS, shadow(of, states[1]), RECONCILER);
  };
const STARTS = ["Idle", "StagedAndPerformedUpdate"] as const;
const DRAINS = ["StagedAndPerformedUpdate", "RebootedIntoUpdate"] as const;

const overwriting =
  (before: readonly Said[], after: readonly Said[], actor = "reconciler-1") =>
  ({ store }: Tools): void => {
    store("nodes", node(A, before));
    store("nodes", node(A, after), { ...RECONCILER, actor });
  };

const saying =
  (phase: string, said: readonly Said[], seconds = 300) =>
  ({ store, wait, look }: Tools): void => {
    store("nodes", node(A, said));
    store(POLICIES, policy([A, phase]));
    look(120_000);
    wait(seconds);
    look(120_000);
    look(120_000);
  };

describe("the oracle of lifecycle conditions", () => {
  const CASES: readonly (readonly [name: string, given: Given, play: (tools: Tools) => void, says: RegExp])[] = [
    [
      "a start where somebody else works",
      { most: 9 },
      wanting(A, STARTS, node(A, [THEIRS])),
      /^reconciler-1 starts the update of node-a-1, on which somebody else works$/,
    ],
    ["a drain there", {}, wanting(A, DRAINS, node(A, [["DrainInProgress", "Repair"]])), /drains of node-a-1, on which/],
    ["a start that was decided before", { most: 9 }, wanting(A, STARTS, node(A, [THEIRS]), 60), /^$/],
    ["a start where somebody plans to", {}, wanting(A, STARTS, node(A, [["MaintenancePlanned", "Repair"]])), /^$/],
    ["a start where we have said so", {}, wanting(A, STARTS, node(A, [["DrainInProgress", OURS]])), /^$/],
    [
      "a start beside such a node",
      {},
      wanting(A, STARTS, node(B, [THEIRS])),
      /^reconciler-1 starts node-a-1 beside node-b-1, which are out of service: 1 may be$/,
    ],
    ["one where more may be out", { most: 2 }, wanting(A, STARTS, node(B, [THEIRS])), /^$/],
    [
      "one beside such a node and one of ours",
      { most: 2, out: ["x"] },
      wanting(A, STARTS, node(B, [THEIRS])),
      /2 may be/,
    ],
    ["one beside such a node that is ours, too", { most: 2, out: [B] }, wanting(A, STARTS, node(B, [THEIRS])), /^$/],
    ["one beside such a node that is lost", {}, wanting(A, STARTS, node(B, [THEIRS], { ready: false })), /^$/],
    [
      "one beside such a node that no policy selects",
      { selective: true },
      wanting(A, STARTS, node(B, [THEIRS], { labels: { [LEFT_OUT]: "true" } })),
      /^$/,
    ],
    [
      "a condition of somebody else that we clear",
      {},
      overwriting([THEIRS], []),
      /^reconciler-1 changes condition MaintenanceInProgress of node-a-1, which Repair has set$/,
    ],
    ["one that we take over", {}, overwriting([THEIRS], [["MaintenanceInProgress", OURS]]), /which Repair has set/],
    ["one of ours that we clear", {}, overwriting([["Drained", OURS]], []), /^$/],
    ["one of somebody else that stays", {}, overwriting([THEIRS], [THEIRS, ["Drained", OURS]]), /^$/],
    ["one that they clear", {}, overwriting([THEIRS], [], "human"), /^$/],
    ["a node whose drain nobody is told of", {}, saying("Draining", []), /^node-a-1 is updated for 120000 ms, and no/],
    ["one that is told of", {}, saying("Draining", [["DrainInProgress", OURS]]), /^$/],
    ["one whose drain has begun", {}, saying("Draining", [], 60), /^$/],
    ["one that is back in service", {}, saying("Monitoring", []), /^$/],
  ];
  for (const [name, given, play, says] of CASES)
    it(`${says.source === "^$" ? "accepts" : "condemns"} ${name}`, () => assert.match(judge(given, play), says));

  it("counts no node on which the work has ended", () => {
    const play = ({ store, wait }: Tools): void => {
      store("nodes", node(A, [THEIRS]));
      wait(300);
      store("nodes", node(A, []));
      store(SHADOWS, shadow(A, "Idle"));
      store(SHADOWS, shadow(A, STARTS[1]), RECONCILER);
    };
    assert.equal(judge({}, play), "");
  });
});
