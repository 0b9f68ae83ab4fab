/** The oracle of requested evictions against histories that it must condemn, and those next to them that it must not. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { KubeObject, StoreEvent } from "../../emulator/store.ts";
import { BUDGETS, NAMESPACE } from "../names.ts";
import { EVICTIONS, EVICTOR, type Entry, type EvictionStatus, RESPONDER } from "./control.ts";
import { createRequestSafety, openEvictions, type RequestSafety } from "./safety.ts";

const ZONE = "ingester-zone-a";
const POD = `${ZONE}-0`;
const START = Date.parse("2026-01-01T00:00:00Z");
const RECONCILER = { actor: "reconciler-1", call: "PATCH x" };

const object = (name: string, fields: object = {}, metadata: object = {}): KubeObject => ({
  apiVersion: "v1",
  kind: "Any",
  metadata: { name, namespace: NAMESPACE, uid: name, resourceVersion: "1", creationTimestamp: "", ...metadata },
  ...fields,
});
const READY = { status: { conditions: [{ type: "Ready", status: "True" }] } };
const LABELS = { name: ZONE, app: "ingester", "controller-revision-hash": "a" };
const pod = (metadata: object = {}, fields: object = READY): KubeObject =>
  object(POD, fields, { labels: LABELS, ...metadata });
const budget = (...entries: readonly (readonly [by: string, uid?: string])[]): KubeObject =>
  object("ingester", {
    status: { disruptedPods: Object.fromEntries(entries.map(([by, uid = POD]) => [POD, { uid, by }])) },
  });
const at = (seconds: number): string => new Date(START + seconds * 1000).toISOString();
function eviction(own: Partial<Entry>, status: Partial<EvictionStatus> = {}): KubeObject {
  const all: EvictionStatus = {
    requesters: [{ name: "x", intent: "Eviction" }],
    targetResponders: [{ name: RESPONDER, priority: 1, state: "Active" }],
    responders: [{ name: RESPONDER, startTime: at(0), ...own }],
    ...status,
  };
  return object(POD, { spec: { target: { pod: { name: POD, uid: POD } } }, status: all });
}
const WITHDRAWN = { requesters: [{ name: "x", intent: "Withdrawn" }] };
const THEIRS = { targetResponders: [{ name: EVICTOR, priority: 1, state: "Active" }] };

interface Tools extends RequestSafety {
  readonly wait: (seconds: number) => void;
  /** What is there in the store from now on. */
  readonly have: (resource: string, ...objects: readonly KubeObject[]) => void;
  readonly change: (resource: string, previous: KubeObject, object: KubeObject, by?: typeof RECONCILER) => void;
}

function judge(play: (tools: Tools) => void, keeps = true): string {
  const violations: string[] = [];
  const objects = new Map<string, readonly KubeObject[]>([["pods", [pod()]]]);
  let now = START;
  const oracle = createRequestSafety({
    shape: { zones: [ZONE] },
    violated: (what) => void violations.push(what),
    now: () => now,
    store: () => ({
      get: (resource, _, name) => objects.get(resource)?.find(({ metadata }) => metadata.name === name),
      list: (resource) => objects.get(resource) ?? [],
    }),
    decidedMs: () => 15_000,
    keepsReservations: () => keeps,
  });
  play({
    ...oracle,
    wait: (seconds) => void (now += seconds * 1000),
    have: (resource, ...given) => void objects.set(resource, given),
    change: (resource, previous, changed, by = RECONCILER) =>
      oracle.onEvent({ type: "MODIFIED", resource, object: changed, previous }, by),
  });
  return violations.join("; ");
}

type Case = readonly [name: string, play: (tools: Tools) => void, says: RegExp];

const ANSWERS: readonly Case[] = [
  [
    "an answer to a request that was withdrawn",
    ({ change }) => change(EVICTIONS, eviction({}, WITHDRAWN), eviction({ heartbeatTime: at(5) }, WITHDRAWN)),
    /answers Eviction ingester-zone-a-0, which nobody asks for/,
  ],
  ["an answer", ({ change }) => change(EVICTIONS, eviction({}), eviction({ heartbeatTime: at(5) })), /^$/],
  [
    "a pod that is handed on without a reservation",
    ({ change }) => change(EVICTIONS, eviction({}), eviction({ completionTime: at(5) })),
    /hands the eviction of ingester-zone-a-0 on, which is not reserved/,
  ],
  [
    "one whose reservation was there long before",
    ({ change, wait }) => (
      change(BUDGETS, budget(), budget(["webhook_responder_x"])),
      wait(200),
      change(EVICTIONS, eviction({}), eviction({ completionTime: at(5) }))
    ),
    /not reserved/,
  ],
  [
    "one that is reserved",
    ({ change }) => (
      change(BUDGETS, budget(), budget(["webhook_responder_x"])),
      change(EVICTIONS, eviction({}), eviction({ completionTime: at(5) }))
    ),
    /^$/,
  ],
  [
    "one that does not serve",
    ({ change, have }) => (
      have("pods", pod({}, {})),
      change(EVICTIONS, eviction({}), eviction({ completionTime: at(5) }))
    ),
    /^$/,
  ],
  [
    "one that is gone",
    ({ change, have }) => (have("pods"), change(EVICTIONS, eviction({}), eviction({ completionTime: at(5) }))),
    /^$/,
  ],
  [
    "an Eviction that the reconciler makes",
    ({ onEvent }) => onEvent({ type: "ADDED", resource: EVICTIONS, object: eviction({}) }, RECONCILER),
    /makes or deletes Eviction/,
  ],
  [
    "an eviction by the reconciler",
    ({ onRequest }) => onRequest(RECONCILER, "POST", `/api/v1/namespaces/x/pods/${POD}/eviction`),
    /reconciler-1 evicts by itself/,
  ],
  [
    "one by a node API",
    ({ onRequest }) => onRequest({ ...RECONCILER, actor: "node-api-1" }, "POST", "/pods/x/eviction"),
    /^$/,
  ],
  [
    "an answer that the API server refuses",
    ({ onRefusal }) => onRefusal(["zonewise.dev/responder: heartbeatTime must occur after startTime"]),
    /refuses an answer to an Eviction: .*after startTime/,
  ],
  [
    "one that it refuses as it came late",
    ({ onRefusal }) => onRefusal(["x: heartbeatTime must be set to the present time"]),
    /^$/,
  ],
];

const zone = (revision: string): StoreEvent => ({
  type: "MODIFIED",
  resource: "statefulsets.apps",
  object: object(ZONE, { status: { updateRevision: revision } }),
});
const ENDING = pod({ deletionTimestamp: at(0) });
const TAKEN: readonly Case[] = [
  [
    "a pod with its zone's template that the reconciler deletes",
    ({ change, onEvent }) => (onEvent(zone("a"), undefined), change("pods", pod(), ENDING)),
    /reconciler-1 deletes ingester-zone-a-0, which has its zone's template/,
  ],
  ["an outdated one", ({ change, onEvent }) => (onEvent(zone("b"), undefined), change("pods", pod(), ENDING)), /^$/],
  [
    "one whose template was taken back a moment ago",
    ({ change, onEvent, wait }) => (
      onEvent(zone("b"), undefined),
      wait(60),
      onEvent(zone("a"), undefined),
      wait(5),
      change("pods", pod(), ENDING)
    ),
    /^$/,
  ],
  [
    "one whose template was taken back long ago",
    ({ change, onEvent, wait }) => (
      onEvent(zone("b"), undefined),
      onEvent(zone("a"), undefined),
      wait(20),
      change("pods", pod(), ENDING)
    ),
    /which has its zone's template/,
  ],
  [
    "one that a person deletes",
    ({ change, onEvent }) => (
      onEvent(zone("a"), undefined),
      change("pods", pod(), ENDING, { actor: "human", call: "" })
    ),
    /^$/,
  ],
];

const silent =
  (given: KubeObject, seconds = 200) =>
  ({ have, wait, look }: Tools): void => {
    have(EVICTIONS, given);
    wait(seconds);
    look(120_000);
    look(120_000);
  };
const SILENCE: readonly Case[] = [
  ["an Eviction without a word", silent(eviction({})), /^Eviction ingester-zone-a-0 has no word for 200000 ms$/],
  ["one with an old word", silent(eviction({ heartbeatTime: at(60) })), /has no word for 140000 ms$/],
  ["one with a new word", silent(eviction({ heartbeatTime: at(100) })), /^$/],
  [
    "one that was expected to be over",
    silent(eviction({ heartbeatTime: at(100), expectedCompletionTime: at(70) })),
    /is expected to be over since 130000 ms/,
  ],
  ["one that is expected to end", silent(eviction({ heartbeatTime: at(100), expectedCompletionTime: at(300) })), /^$/],
  ["one that nobody asks for", silent(eviction({}, WITHDRAWN)), /^$/],
  ["one in another responder's turn", silent(eviction({}, THEIRS)), /^$/],
  ["one that is over", silent(eviction({}, { conditions: [{ type: "Failed", status: "True" }] })), /^$/],
  ["one that is handed on", silent(eviction({ completionTime: at(5) })), /^$/],
];

describe("the oracle of requested evictions", () => {
  for (const [name, play, says] of [...ANSWERS, ...TAKEN, ...SILENCE])
    it(`${says.source === "^$" ? "accepts" : "condemns"} ${name}`, () => assert.match(judge(play), says));

  it("asks for no reservation where the budget keeps none", () =>
    assert.equal(
      judge(({ change }) => change(EVICTIONS, eviction({}), eviction({ completionTime: at(5) })), false),
      "",
    ));
});

describe("the end of requested evictions", () => {
  const open = (given: KubeObject, pods: readonly KubeObject[] = [pod()]): string =>
    openEvictions({
      list: () => [given],
      get: (_, __, name) => pods.find(({ metadata }) => metadata.name === name),
    }).join();
  it("condemns one that is open", () =>
    assert.match(open(eviction({})), /is not over: zonewise.dev\/responder has its turn$/));
  it("condemns one whose pod is gone", () => assert.match(open(eviction({}), []), /its turn, and the pod is gone$/));
  it("accepts one that is over", () =>
    assert.equal(open(eviction({}, { conditions: [{ type: "TargetEvicted", status: "True" }] })), ""));
});
