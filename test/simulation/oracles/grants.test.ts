/** The oracle against histories that it must condemn, and those next to them that it must not. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { KubeObject } from "../../emulator/store.ts";
import { drawFrom } from "../draw.ts";
import { createGrantSafety } from "./grants.ts";
import { createKept } from "./kept.ts";
import { BUDGET, BUDGETS, LEASES, NAMESPACE } from "../names.ts";
import { drawShape, type Shape } from "../shape.ts";

const ZONE = "ingester-zone-a";
const drawn = drawShape(drawFrom(1));
const SHAPE: Shape = {
  ...drawn,
  zones: [ZONE],
  partitioned: false,
  firstCalls: undefined,
  answers: undefined,
  faults: Object.fromEntries(Object.keys(drawn.faults).map((fault) => [fault, 0])) as Shape["faults"],
};
const ROLLOUT = "reconciler-1_x";
const LEASE = `zonewise-budget-${BUDGET}`;

const object = (name: string, rest: object = {}, metadata: object = {}): KubeObject => ({
  apiVersion: "x/v1",
  kind: "Any",
  ...rest,
  metadata: { name, namespace: NAMESPACE, uid: name, resourceVersion: "1", creationTimestamp: "", ...metadata },
});
interface PodState {
  readonly ready?: boolean;
  readonly works?: boolean;
  readonly revision?: string;
}
const pod = (ordinal: number, { ready = true, works = true, revision = "old" }: PodState = {}): KubeObject =>
  object(
    `${ZONE}-${ordinal}`,
    {
      status: {
        conditions: [{ type: "Ready", status: ready ? "True" : "False" }],
        containerStatuses: [{ ready: works }],
      },
    },
    { labels: { "controller-revision-hash": revision } },
  );
const reserved = (ordinals: readonly number[], by = ROLLOUT): object =>
  Object.fromEntries(
    ordinals.map((ordinal) => [`${ZONE}-${ordinal}`, { uid: `${ZONE}-${ordinal}`, by, time: "2026-01-01T00:00:00Z" }]),
  );
const budget = (disruptedPods: object): KubeObject =>
  object(BUDGET, { spec: { maxUnavailable: 1 }, status: { disruptedPods } });

interface Play {
  readonly pods?: readonly KubeObject[];
  readonly before?: readonly number[];
  readonly after: readonly number[];
  readonly by?: string;
  readonly actor?: string;
  /** When the pods are listed, after the budget is stored; and when it is stored by another process. */
  readonly storedAgain?: boolean;
  readonly shape?: Partial<Shape>;
}

function play({ pods = [], before = [], after, by, actor = "reconciler-1", storedAgain = false, shape }: Play): string {
  const violations: string[] = [];
  let now = 0;
  const safety = createGrantSafety({
    shape: { ...SHAPE, ...shape },
    violated: (what) => void violations.push(what),
    now: () => now,
  });
  const set = object(ZONE, { spec: { replicas: 3 }, status: { updateRevision: "new" } });
  safety.onEvent({ type: "ADDED", resource: "statefulsets.apps", object: set }, undefined);
  for (const one of [pod(0), pod(1), pod(2), ...pods])
    safety.onEvent({ type: "MODIFIED", resource: "pods", object: one }, undefined);
  const [previous, next] = [budget(reserved(before)), budget(reserved([...before, ...after], by))];
  safety.onEvent({ type: "ADDED", resource: BUDGETS, object: previous }, undefined);
  now += 1000;
  safety.onSent({ actor, call: "" }, "GET", `/api/v1/namespaces/${NAMESPACE}/pods?limit=500`);
  now += 1000;
  if (storedAgain) safety.onEvent({ type: "MODIFIED", resource: BUDGETS, object: previous, previous }, undefined);
  now += 1000;
  safety.onEvent({ type: "MODIFIED", resource: BUDGETS, object: next, previous }, { actor, call: "" });
  return violations.join("; ");
}

const CASES: readonly (readonly [name: string, given: Play, says: RegExp])[] = [
  ["as many pods as the budget allows", { after: [0] }, /^$/],
  ["more than it allows", { after: [0, 1] }, /reserves more pods of ingester-zone-a than the 1 .*-a-0, .*-a-1/],
  ["one more than it allows", { before: [1], after: [0] }, /-a-1, ingester-zone-a-0/],
  ["pods that serve in part, more than it allows", { pods: [pod(0, { ready: false })], after: [0, 1] }, /-a-0/],
  ["pods that do not work", { pods: [0, 1].map((i) => pod(i, { ready: false, works: false })), after: [0, 1] }, /^$/],
  ["one while another waits for the same cure", { pods: [pod(1, { ready: false })], after: [0] }, /^$/],
  ["one while another has its cure", { pods: [pod(1, { ready: false, revision: "new" })], after: [0] }, /-a-1/],
  ["pods for evictions", { after: [0, 1], by: "webhook_webhooks-1_x", actor: "webhooks-1" }, /^$/],
  ["pods of a partition each", { after: [0, 1], shape: { partitioned: true } }, /^$/],
  ["a pod on what was stored after the pods were listed", { after: [0], storedAgain: true }, /1000 ms before what/],
];

describe("the oracle of who reserves", () => {
  for (const [name, given, says] of CASES)
    it(`${says.source === "^$" ? "accepts" : "condemns"} ${name}`, () => assert.match(play(given), says));
});

describe("what a Lease keeps", () => {
  it("is told as if the budget had the field", () => {
    const kept = createKept(() => [object(BUDGET)]);
    const note = JSON.stringify(reserved([0]));
    const lease = object(LEASE, {}, { annotations: { "zonewise/disrupted-pods": note } });
    const told = kept.tell({ type: "ADDED", resource: LEASES, object: lease });
    assert.equal(told.resource, BUDGETS);
    assert.deepEqual(told.object["status"], { disruptedPods: reserved([0]) });
    assert.deepEqual(told.previous?.["status"], { disruptedPods: {} });
    assert.deepEqual(kept.list()[0]?.["status"], told.object["status"]);
  });

  it("leaves other Leases and budgets with the field as they are", () => {
    const kept = createKept(() => []);
    for (const event of [
      { type: "MODIFIED", resource: LEASES, object: object("zonewise-reconciler") } as const,
      { type: "MODIFIED", resource: BUDGETS, object: budget(reserved([1])) } as const,
    ])
      assert.deepEqual(kept.tell(event), event);
  });
});
