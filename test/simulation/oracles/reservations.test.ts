/** The oracle against histories that it must condemn, and those next to them that it must not. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { KubeObject, StoreEvent } from "../../emulator/store.ts";
import { BUDGET, BUDGETS, NAMESPACE } from "../names.ts";
import { createReservationSafety } from "./reservations.ts";

const PATH = "/admission/mutate-pod-eviction";
const POD = "ingester-zone-a-0";
const SHRINK = "ingester-zone-a-2+";
const object = (name: string, uid: string, rest: object = {}): KubeObject => ({
  apiVersion: "x/v1",
  kind: "Any",
  metadata: { name, namespace: NAMESPACE, uid, resourceVersion: "1", creationTimestamp: "2026-01-01T00:00:00Z" },
  ...rest,
});
/** The pod as it ends, with the UID of its StatefulSet. */
const endingOf = (owner: string): KubeObject => {
  const bare = object(POD, "a");
  const ownerReferences = [{ apiVersion: "apps/v1", kind: "StatefulSet", name: "ingester-zone-a", uid: owner }];
  return { ...bare, metadata: { ...bare.metadata, deletionTimestamp: "2026-01-01T00:00:00Z", ownerReferences } };
};
const changed = (before: object, after: object): StoreEvent => {
  const [previous, next] = [before, after].map((disruptedPods) => object(BUDGET, "b", { status: { disruptedPods } }));
  return { type: "MODIFIED", resource: BUDGETS, object: next ?? object(BUDGET, "b"), ...(previous && { previous }) };
};

interface Play {
  /** Requests that reached a webhook, so many seconds before. */
  readonly asked?: readonly (readonly [secondsAgo: number, request: object])[];
  readonly before?: object;
  readonly after?: object;
  /** Who writes, one write after the other if there are several states. */
  readonly by?: string;
  readonly path?: string;
  readonly replicas?: number;
  readonly pod?: KubeObject;
  /** What the zone had for a moment, with what is reserved before. */
  readonly onceReplicas?: number;
  /** What was reserved before that. */
  readonly earlier?: object;
  /** It has sent a deletion of the pod before, and what was answered; nothing for 0. */
  readonly deletion?: number;
  /** So many seconds later it is looked at what is left. */
  readonly later?: number;
}

function play(given: Play): string {
  const { asked = [], before = {}, after = { [POD]: { uid: "a" } }, by = "webhooks-1", path = PATH } = given;
  const violations: string[] = [];
  let now = 0;
  let replicas = given.onceReplicas ?? given.replicas ?? 3;
  const safety = createReservationSafety({
    shape: { skewMs: 0 },
    violated: (what) => void violations.push(what),
    now: () => now,
    podOf: (name) => given.pod ?? object(name, "a"),
    setOf: (name) => object(name, "z", { spec: { replicas } }),
  });
  for (const [secondsAgo, request] of asked) {
    now = -secondsAgo * 1000;
    safety.onArrival(path, JSON.stringify({ request: { name: POD, ...request } }));
  }
  now = 0;
  if (given.onceReplicas !== undefined) {
    safety.onEvent(changed({}, before), { actor: "human", call: "" });
    safety.onEvent(
      { type: "MODIFIED", resource: "statefulsets.apps", object: object("ingester-zone-a", "z") },
      undefined,
    );
    replicas = 3;
  }
  const caller = { actor: by, call: "" };
  const [deletion, target] = [JSON.stringify({ preconditions: { uid: "a" } }), `/api/v1/pods/${POD}`];
  if (given.deletion !== undefined) safety.onSent(caller, "DELETE", target, deletion);
  if (given.deletion === 500) safety.onFault("serverError at reconciler DELETE pods");
  if (given.deletion === 429) safety.onFault("throttled at reconciler DELETE pods");
  else if (given.deletion) safety.onAnswered(caller, "DELETE", target, deletion, given.deletion);
  if (given.earlier) safety.onEvent(changed(given.earlier, before), caller);
  safety.onEvent(changed(before, after), caller);
  for (const second of [0, given.later ?? 0]) {
    now = second * 1000;
    safety.look(60_000);
  }
  return violations.join("; ");
}

/** What is reserved now, or so many seconds ago. */
const entry = (by: string, secondsAgo = 0, uid = "a"): object => ({
  uid,
  by,
  time: new Date(-secondsAgo * 1000).toISOString(),
});

describe("the oracle of reservations", () => {
  const [DRY, WET] = [{ dryRun: true }, { dryRun: false }];
  const AHEAD = { [POD]: entry("webhook_ahead", -3600) };
  const IN_OPTIONS = { dryRun: false, object: { deleteOptions: { dryRun: ["All"] } } };
  const CASES: readonly (readonly [name: string, given: Play, says: RegExp])[] = [
    ["a reservation for a dry run", { asked: [[1, DRY]] }, /webhooks-1 reserves ingester-zone-a-0/],
    ["one for a dry run by the eviction's options", { asked: [[1, IN_OPTIONS]] }, /in a dry run/],
    [
      "one for a dry run long after an eviction",
      {
        asked: [
          [300, WET],
          [1, DRY],
        ],
      },
      /in a dry run/,
    ],
    [
      "one for an eviction beside a dry run",
      {
        asked: [
          [5, WET],
          [1, DRY],
        ],
      },
      /^$/,
    ],
    ["one for a dry run of a deletion", { asked: [[1, DRY]], path: "/admission/pod-deletion" }, /in a dry run/],
    ["one for a deletion", { asked: [[1, WET]], path: "/admission/pod-deletion" }, /^$/],
    ["one for an eviction", { asked: [[1, WET]] }, /^$/],
    [
      "one beside another from far ahead",
      { by: "reconciler-1", before: AHEAD, after: { ...AHEAD, "ingester-zone-a-1": entry("reconciler-1_x") } },
      /writes that ingester-zone-a-0 is reserved from a time far ahead on/,
    ],
    ["one from far ahead that stays as it is", { by: "reconciler-1", before: AHEAD, after: AHEAD }, /^$/],
    ["one that was made before", { asked: [[1, DRY]], before: { [POD]: { uid: "a" } } }, /^$/],
    [
      "one for the eviction of another pod of the name",
      { asked: [[1, { object: { deleteOptions: { preconditions: { uid: "b" } } } }]] },
      /as another pod/,
    ],
    [
      "one for the eviction of this very pod",
      { asked: [[1, { object: { deleteOptions: { preconditions: { uid: "a" } } } }]] },
      /^$/,
    ],
    [
      "an eviction's that the rollout takes over at once",
      {
        by: "reconciler-1",
        before: { [POD]: entry("webhook_webhooks-1_x", 14) },
        after: { [POD]: entry("reconciler-1_x") },
      },
      /reserves ingester-zone-a-0 14000 ms after webhook_webhooks-1_x has/,
    ],
    [
      "an old one that the rollout takes over",
      {
        by: "reconciler-1",
        before: { [POD]: entry("webhook_webhooks-1_x", 15) },
        after: { [POD]: entry("reconciler-1_x") },
      },
      /^$/,
    ],
    ["an eviction's that is gone", { before: { [POD]: entry("webhook_webhooks-1_x") }, after: {} }, /forgets that/],
    ["an eviction's that has expired", { before: { [POD]: entry("webhook_webhooks-1_x", 121) }, after: {} }, /^$/],
    [
      "an eviction's of a pod that is gone",
      { before: { [POD]: entry("webhook_webhooks-1_x", 0, "old") }, after: {} },
      /^$/,
    ],
    [
      "an eviction's of a pod that ends",
      { before: { [POD]: entry("webhook_webhooks-1_x") }, after: {}, pod: endingOf("z") },
      /forgets that/,
    ],
    [
      "an eviction's of a pod that ends, and whose StatefulSet was deleted",
      { before: { [POD]: entry("webhook_webhooks-1_x") }, after: {}, pod: endingOf("earlier") },
      /^$/,
    ],
    [
      "a rollout's that it takes back",
      { before: { [POD]: entry("reconciler-1_x") }, after: {}, by: "reconciler-1" },
      /^$/,
    ],
    [
      "a rollout's whose deletion is refused",
      { before: { [POD]: entry("reconciler-1_x") }, after: {}, by: "reconciler-1", deletion: 409 },
      /^$/,
    ],
    [
      "a rollout's that it takes back as a webhook could not be asked",
      { before: { [POD]: entry("reconciler-1_x") }, after: {}, by: "reconciler-1", deletion: 503 },
      /^$/,
    ],
    [
      "a rollout's whose deletion is throttled",
      { before: { [POD]: entry("reconciler-1_x") }, after: {}, by: "reconciler-1", deletion: 429 },
      /^$/,
    ],
    [
      "a rollout's whose deletion may still take effect",
      { before: { [POD]: entry("reconciler-1_x") }, after: {}, by: "reconciler-1", deletion: 0 },
      /forgets ingester-zone-a-0, whose deletion it has sent/,
    ],
    [
      "a rollout's whose deletion ends in an error",
      { before: { [POD]: entry("reconciler-1_x") }, after: {}, by: "reconciler-1", deletion: 500 },
      /forgets ingester-zone-a-0, whose deletion it has sent/,
    ],
    [
      "a rollout's in the place of an eviction's",
      {
        earlier: { [POD]: entry("webhook_webhooks-1_x", 60) },
        before: { [POD]: entry("reconciler-1_x") },
        after: {},
        by: "reconciler-1",
      },
      /takes ingester-zone-a-0 back, which webhook_webhooks-1_x has let go before/,
    ],
    [
      "a rollout's that another takes",
      { before: { [POD]: entry("reconciler-1_x") }, after: {}, by: "reconciler-2" },
      /forgets/,
    ],
    [
      "a downscale's that may still be stored",
      { before: { [SHRINK]: entry("webhook_webhooks-1_x", 80, "z") }, after: {}, by: "reconciler-2" },
      /forgets that ingester-zone-a-2\+/,
    ],
    [
      "a downscale's that is stored",
      { before: { [SHRINK]: entry("webhook_webhooks-1_x", 80, "z") }, after: {}, by: "reconciler-2", replicas: 2 },
      /^$/,
    ],
    [
      "a downscale's that was stored, of a zone that has grown since",
      { before: { [SHRINK]: entry("webhook_webhooks-1_x", 80, "z") }, after: {}, by: "reconciler-2", onceReplicas: 2 },
      /^$/,
    ],
    ["one that is over for a moment", { by: "human", after: { [POD]: entry("reconciler-1_x") }, later: 300 }, /^$/],
    [
      "one that is left for good",
      { by: "human", after: { [POD]: entry("reconciler-1_x", 200) }, later: 121 },
      /is still reserved/,
    ],
    [
      "one that a reconciler may still take away",
      { by: "human", after: { [POD]: entry("reconciler-1_x", 200) }, later: 90 },
      /^$/,
    ],
    ["one of a zone that shrinks", { asked: [[1, DRY]], after: { "ingester-zone-a-0+": { uid: "a" } } }, /^$/],
    ["one by a reconciler", { asked: [[1, DRY]], by: "reconciler-1" }, /^$/],
  ];
  for (const [name, given, says] of CASES)
    it(`${says.source === "^$" ? "accepts" : "condemns"} ${name}`, () => assert.match(play(given), says));
});
