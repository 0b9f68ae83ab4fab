/** The oracle against histories that it must condemn, and those next to them that it must not. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { dig, fieldsOf } from "../emulator/objects.ts";
import type { KubeObject } from "../emulator/store.ts";
import { drawFrom } from "./draw.ts";
import { BUDGET, BUDGETS, GROUP, NAMESPACE, zoneOf } from "./names.ts";
import { createReviewSafety } from "./reviews.ts";
import { drawShape, type Shape } from "./shape.ts";

const [A, B] = ["ingester-zone-a", "ingester-zone-b"];
const drawn = drawShape(drawFrom(1));
const SHAPE: Shape = {
  ...drawn,
  zones: [A, B],
  partitioned: false,
  skewMs: 0,
  firstCalls: undefined,
  answers: undefined,
  faults: Object.fromEntries(Object.keys(drawn.faults).map((fault) => [fault, 0])) as Shape["faults"],
};
const PATH = "/admission/mutate-pod-eviction";
const POD = `${A}-0`;

const object = (name: string, rest: object = {}): KubeObject => ({
  apiVersion: "x/v1",
  kind: "Any",
  ...rest,
  metadata: {
    name,
    namespace: NAMESPACE,
    uid: name,
    labels: { app: GROUP },
    resourceVersion: "1",
    creationTimestamp: "2026-01-01T00:00:00Z",
  },
});
const pod = (name: string, status = "True"): KubeObject =>
  object(name, { status: { phase: "Running", conditions: [{ type: "Ready", status }] } });
const zone = (name: string, replicas = 2): KubeObject =>
  object(name, { spec: { replicas }, status: { replicas, readyReplicas: replicas } });
const budget = (spec: object = {}, disruptedPods: object = {}): KubeObject =>
  object(BUDGET, { spec: { maxUnavailable: 1, ...spec }, status: { disruptedPods } });
const RESOURCES: Readonly<Record<string, string>> = {
  [BUDGET]: BUDGETS,
  [A]: "statefulsets.apps",
  [B]: "statefulsets.apps",
};
const reserve = (key: string, { by = "webhook_webhooks-1_x", uid = key, at = 0 } = {}): KubeObject =>
  budget({}, { [key]: { uid, by, time: new Date(at).toISOString() } });

interface Play {
  readonly shape?: Partial<Shape>;
  /** What is written a second before the webhook is asked. */
  readonly before?: readonly KubeObject[];
  /** After it was asked, and before it reads. */
  readonly meanwhile?: readonly KubeObject[];
  /** After it has read. */
  readonly after?: readonly KubeObject[];
  readonly eviction?: object;
  /** What it reserves itself; its pod, by default. */
  readonly reserves?: KubeObject;
  /** Why it denies; it allows by default. */
  readonly denial?: string;
}

function play({ shape, before = [], meanwhile = [], after = [], eviction, denial, reserves }: Play): string {
  const violations: string[] = [];
  let now = -10_000;
  const all = { ...SHAPE, ...shape };
  const safety = createReviewSafety({ shape: all, violated: (what) => void violations.push(what), now: () => now });
  const write = (objects: readonly KubeObject[]): void => {
    now += 1000;
    for (const one of objects) {
      const resource = RESOURCES[one.metadata.name] ?? (zoneOf(one.metadata.name) === "second" ? BUDGETS : "pods");
      safety.onEvent({ type: "MODIFIED", resource, object: one });
    }
  };
  const pods = [A, B].flatMap((name) => [pod(`${name}-0`), pod(`${name}-1`)]);
  write([budget(), zone(A), zone(B), ...pods]);
  write(before);
  now += 1000;
  const request = { uid: "r", name: POD, object: eviction };
  safety.onArrival(PATH, JSON.stringify({ request }), "webhooks-1");
  write(meanwhile);
  now += 1;
  for (const path of ["zoneawarepoddisruptionbudgets", "pods"])
    safety.onRequest({ actor: "webhooks-1", call: "" }, "GET", `/api/v1/namespaces/${NAMESPACE}/${path}?limit=500`);
  write(after);
  const stored = [...before, ...meanwhile, ...after].findLast(({ metadata }) => metadata.name === BUDGET) ?? budget();
  const own = fieldsOf(dig(reserve(POD), "status", "disruptedPods"));
  const status = { disruptedPods: { ...fieldsOf(dig(stored, "status", "disruptedPods")), ...own } };
  if (denial === undefined) write([reserves ?? { ...stored, status }]);
  now += 1;
  const response = { uid: "r", allowed: denial === undefined, status: { message: denial } };
  const answer = JSON.stringify({ response });
  safety.onReview({ path: PATH, status: 200, sent: JSON.stringify({ request }), answer });
  return violations.join("; ");
}

describe("the oracle of what webhooks let go", () => {
  const PARTITIONED = { partitioned: true };
  const CASES: readonly (readonly [name: string, given: Play, says: RegExp])[] = [
    ["a pod while all are there", {}, /^$/],
    ["one while another zone lacks a pod", { before: [pod(`${B}-1`, "False")] }, /ingester-zone-b-1 of another zone/],
    [
      "one while another zone lacks a pod as the pods are read",
      { meanwhile: [pod(`${B}-1`, "False")] },
      /-b-1 of another/,
    ],
    ["one while another zone loses a pod afterwards", { after: [pod(`${B}-1`, "False")] }, /^$/],
    ["one while its own zone lacks as many as it may", { before: [pod(`${A}-1`, "False")] }, /-a-1 of its zone/],
    ["one that is not ready itself", { before: [pod(POD, "False")] }, /^$/],
    ["one while a pod of another zone is reserved", { before: [reserve(`${B}-0`)] }, /-b-0 of another zone/],
    ["one while an earlier pod of the name was", { before: [reserve(`${B}-0`, { uid: "old" })] }, /^$/],
    [
      "one while what was reserved has gone",
      { before: [reserve(`${B}-0`)], meanwhile: [budget(), pod(`${B}-0`, "False")] },
      /-b-0/,
    ],
    ["one while an old reservation is left", { before: [reserve(`${B}-0`, { at: -130_000 })] }, /^$/],
    ["one while another zone is to shrink", { before: [reserve(`${B}-1+`, { uid: B })] }, /-b-1 of another zone/],
    ["one while another zone has a pod too many", { before: [zone(B, 1)] }, /-b-1 of another zone/],
    ["one while its own zone is to shrink", { before: [reserve(`${A}-1+`, { uid: A })] }, /^$/],
    ["one that nobody has reserved", { reserves: budget() }, /by a reservation that nobody has made/],
    ["one that the rollout has reserved", { reserves: reserve(POD, { by: "reconciler-1_x" }) }, /of reconciler-1_x/],
    ["a dry run", { reserves: budget(), eviction: { deleteOptions: { dryRun: ["All"] } } }, /^$/],
    ["one under an invalid budget", { before: [budget({ podNamePartitionRegex: "([" })] }, /its budget is invalid/],
    ["one under a budget that becomes invalid", { after: [budget({ podNamePartitionRegex: "([" })] }, /^$/],
    ["one under two budgets", { before: [object("second-1")] }, /under two budgets/],
    ["one of a budget that allows nothing", { before: [budget({ maxUnavailable: 0 })] }, /allows nothing/],
    ["one of a budget that has allowed one before", { after: [budget({ maxUnavailable: 0 })] }, /^$/],
    [
      "the eviction of another pod of the name",
      { before: [pod(`${B}-1`, "False")], eviction: { deleteOptions: { preconditions: { uid: "old" } } } },
      /^$/,
    ],
    ["one whose peer is missing", { shape: PARTITIONED, before: [pod(`${B}-0`, "False")] }, /-b-0 are missing/],
    ["one whose zone has no peer", { shape: PARTITIONED, before: [zone(B, 0)] }, /-b-0 are missing/],
    ["one while another ordinal is missing", { shape: PARTITIONED, before: [pod(`${B}-1`, "False")] }, /^$/],
    [
      "a denial while all are there",
      { denial: "1 pod not ready in ingester-zone-b" },
      /denies to let ingester-zone-a-0/,
    ],
    ["a denial for a pod that is missing", { before: [pod(`${B}-1`, "False")], denial: "1 pod not ready in b" }, /^$/],
    ["a denial for another reason", { denial: "no decision could be made in time, try again" }, /^$/],
    ["a denial while something is written", { meanwhile: [pod(`${B}-1`)], denial: "1 pod not ready in b" }, /^$/],
  ];
  for (const [name, given, says] of CASES)
    it(`${says.source === "^$" ? "accepts" : "condemns"} ${name}`, () => assert.match(play(given), says));

  /** What zone "a" misses elsewhere, as it gets one pod. */
  function missed(shape: Partial<Shape>, ...objects: readonly KubeObject[]): string | undefined {
    let now = -10_000;
    const safety = createReviewSafety({ shape: { ...SHAPE, ...shape }, violated: () => {}, now: () => now });
    const pods = [`${A}-0`, `${A}-1`, `${B}-0`, `${B}-1`].map((name) => pod(name));
    for (const one of [budget(), zone(A), zone(B), ...pods, ...objects])
      safety.onEvent({
        type: one["kind"] === "Gone" ? "DELETED" : "MODIFIED",
        resource: RESOURCES[one.metadata.name] ?? "pods",
        object: one,
      });
    now = 0;
    return safety.missedBut(A, 1, now);
  }
  const gone = (name: string): KubeObject => ({ ...pod(name), kind: "Gone" });
  const MIRRORED = { followers: false, mirrored: { delayMs: 0 } };
  const FREE = { followers: false, mirrored: undefined };
  for (const [name, found, says] of [
    ["nothing while all are there", missed(FREE), undefined],
    ["a pod that is not ready", missed(FREE, pod(`${B}-1`, "False")), `${B}-1 is missing`],
    ["one that is not there", missed(FREE, gone(`${B}-1`)), `${B}-1 is missing`],
    ["not one that its zone is to lose as well", missed(MIRRORED, gone(`${B}-1`)), undefined],
    ["one that it keeps", missed(MIRRORED, gone(`${B}-0`)), `${B}-0 is missing`],
    ["a peer", missed(PARTITIONED, pod(`${B}-1`, "False")), `${B}-1 is missing, as many peers as may be`],
    ["not the peer of a pod that stays", missed(PARTITIONED, pod(`${B}-0`, "False")), undefined],
    ["not a peer that is not there", missed(PARTITIONED, gone(`${B}-1`)), undefined],
  ] as const)
    it(`knows that a downscale misses ${name}`, () => assert.equal(found, says));
});
