/** The oracle against histories that it must condemn, and those next to them that it must not. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { KubeObject, StoreEvent } from "../emulator/store.ts";
import { drawFrom } from "./draw.ts";
import type { Caller } from "./network.ts";
import { createSafety, type Safety } from "./safety.ts";
import { drawShape, NAMESPACE, type Shape } from "./shape.ts";

const [A, B] = ["ingester-zone-a", "ingester-zone-b"];
const SHAPE: Shape = {
  ...drawShape(drawFrom(1)),
  zones: [A, B],
  replicas: 3,
  maxUnavailable: 1,
  budget: 1,
  minutesBetween: 0,
  prepared: false,
};
const RECONCILER: Caller = { actor: "reconciler-1", call: "DELETE pods/x" };
const DRAINER: Caller = { actor: "drainer", call: "POST pods/x/eviction" };
const HUMAN: Caller = { actor: "human", call: "DELETE pods/x" };

const pod = (name: string, { uid = name, ready = true, terminating = false } = {}): KubeObject => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: {
    name,
    namespace: NAMESPACE,
    uid,
    resourceVersion: "1",
    creationTimestamp: "2026-01-01T00:00:00Z",
    ...(terminating && { deletionTimestamp: "2026-01-01T00:10:00Z" }),
  },
  status: { conditions: [{ type: "Ready", status: ready ? "True" : "False" }] },
});
const taken = (name: string, given: { uid?: string; ready?: boolean } = {}): StoreEvent => ({
  type: "MODIFIED",
  resource: "pods",
  object: pod(name, { ...given, terminating: true }),
  previous: pod(name, given),
});
const back = (name: string): StoreEvent => ({
  type: "MODIFIED",
  resource: "pods",
  object: pod(name, { uid: `${name}-new` }),
});
const scaled = (name: string, replicas: number): StoreEvent => ({
  type: "MODIFIED",
  resource: "statefulsets.apps",
  object: { ...pod(name), spec: { replicas } },
});

function judge(shape: Partial<Shape>, play: (safety: Safety) => void, prepared: readonly string[] = []): string[] {
  const violations: string[] = [];
  play(
    createSafety({
      shape: { ...SHAPE, ...shape },
      violated: (what) => void violations.push(what),
      isPrepared: (uid) => prepared.includes(uid),
      listPods: (zone) => [0, 1, 2].map((ordinal) => pod(`${zone}-${ordinal}`)),
      leader: () => ({ holder: "reconciler-2_x", sinceMs: 60_000 }),
      now: () => Date.parse("2026-01-01T00:10:00Z"),
    }),
  );
  return violations;
}

type Step = readonly [StoreEvent, Caller];
const CASES: readonly (readonly [string, Partial<Shape>, readonly Step[], RegExp | undefined])[] = [
  [
    "two downscales too soon",
    { minutesBetween: 3 },
    [
      [scaled(A, 2), RECONCILER],
      [scaled(B, 2), RECONCILER],
    ],
    /after another zone/,
  ],
  [
    "two downscales without a time between them",
    {},
    [
      [scaled(A, 2), RECONCILER],
      [scaled(B, 2), RECONCILER],
    ],
    undefined,
  ],
  [
    "two downscales of one zone",
    { minutesBetween: 3 },
    [
      [scaled(A, 2), RECONCILER],
      [scaled(A, 1), RECONCILER],
    ],
    undefined,
  ],
  [
    "two zones by the reconciler",
    {},
    [
      [taken(`${A}-0`), RECONCILER],
      [taken(`${B}-0`), RECONCILER],
    ],
    /two zones/,
  ],
  [
    "an eviction beside a rollout",
    {},
    [
      [taken(`${A}-0`), RECONCILER],
      [taken(`${B}-1`), DRAINER],
    ],
    /two zones/,
  ],
  [
    "two pods of a zone, one allowed",
    {},
    [
      [taken(`${A}-0`), DRAINER],
      [taken(`${A}-1`), RECONCILER],
    ],
    /2 pods of/,
  ],
  [
    "a downscale beside an eviction",
    {},
    [
      [taken(`${A}-0`), DRAINER],
      [scaled(B, 1), RECONCILER],
    ],
    /two zones/,
  ],
  [
    "two pods of a zone, two allowed",
    { maxUnavailable: 2 },
    [
      [taken(`${A}-0`), RECONCILER],
      [taken(`${A}-1`), RECONCILER],
    ],
    undefined,
  ],
  [
    "one zone after the other",
    {},
    [
      [taken(`${A}-0`), RECONCILER],
      [back(`${A}-0`), HUMAN],
      [taken(`${B}-0`), RECONCILER],
    ],
    undefined,
  ],
  [
    "what a human deletes",
    {},
    [
      [taken(`${A}-0`), HUMAN],
      [taken(`${B}-0`), RECONCILER],
    ],
    undefined,
  ],
  [
    "a pod that was not ready",
    {},
    [
      [taken(`${A}-0`, { ready: false }), RECONCILER],
      [taken(`${B}-0`), RECONCILER],
    ],
    undefined,
  ],
  [
    "a pod that is not wanted any more",
    {},
    [
      [taken(`${A}-2`), RECONCILER],
      [scaled(A, 2), HUMAN],
      [taken(`${B}-0`), RECONCILER],
    ],
    undefined,
  ],
  [
    "evictions that no budget selects",
    { budget: undefined },
    [
      [taken(`${A}-0`), DRAINER],
      [taken(`${B}-0`), DRAINER],
    ],
    undefined,
  ],
];

describe("the oracle of safety", () => {
  for (const [name, shape, steps, expected] of CASES)
    it(`${expected ? "condemns" : "accepts"} ${name}`, () => {
      const violations = judge(shape, ({ onEvent }) => {
        for (const [event, caller] of steps) onEvent(event, caller);
      });
      assert.equal(violations.length, expected ? 1 : 0, violations.join("; "));
      if (expected) assert.match(violations[0] ?? "", expected);
    });

  it("condemns a downscale whose pods were not prepared", () => {
    const shrink = ({ onEvent }: Safety): void => onEvent(scaled(A, 2), HUMAN);
    assert.match(judge({ prepared: true }, shrink).join(), /ingester-zone-a-2 was not prepared/);
    assert.deepEqual(judge({ prepared: true }, shrink, [`${A}-2`]), []);
  });

  it("condemns a deletion without preconditions, and a call into another namespace", () => {
    const remove = (body: object, namespace = NAMESPACE): string[] =>
      judge({}, ({ onRequest }) =>
        onRequest(
          { ...RECONCILER, actor: "reconciler-2" },
          "DELETE",
          `/api/v1/namespaces/${namespace}/pods/x`,
          JSON.stringify(body),
        ),
      );
    const preconditions = { uid: "u", resourceVersion: "1" };
    assert.deepEqual(remove({ preconditions }), []);
    assert.match(remove({ preconditions: { uid: "u" } }).join(), /may not have judged/);
    assert.match(remove({ preconditions }, "other").join(), /another namespace/);
  });

  it("condemns a reconciler that writes long after another one has taken the Lease", () => {
    const written = (actor: string): string[] =>
      judge({}, ({ onRequest }) =>
        onRequest({ actor, call: "" }, "PATCH", `/apis/apps/v1/namespaces/${NAMESPACE}/statefulsets/${A}`, "{}"),
      );
    assert.deepEqual(written("reconciler-2"), []);
    assert.match(written("reconciler-1").join(), /60000 ms after reconciler-2_x has taken the Lease/);
  });

  it("condemns a webhook that answers 5xx, or another request", () => {
    const review = (uid: string): string => JSON.stringify({ request: { uid } });
    const answer = (uid: string): string => JSON.stringify({ response: { uid } });
    const told = (status: number, uid: string): string[] =>
      judge({}, ({ onReview }) => onReview({ sent: review("a"), status, answer: answer(uid), lateMs: -1 }));
    assert.deepEqual(told(200, "a"), []);
    assert.match(told(200, "b").join(), /another request/);
    assert.match(told(500, "a").join(), /answers 500/);
    const late = judge({}, ({ onReview }) =>
      onReview({ sent: review("a"), status: 200, answer: answer("a"), lateMs: 1 }),
    );
    assert.match(late.join(), /1 ms after its deadline/);
  });
});
