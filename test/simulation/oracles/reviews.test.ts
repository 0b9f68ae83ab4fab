/** The oracle against histories that it must condemn, and those next to them that it must not. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { dig, fieldsOf } from "../../emulator/objects.ts";
import type { KubeObject } from "../../emulator/store.ts";
import { drawFrom } from "../draw.ts";
import { BUDGET, BUDGETS, GROUP, NAMESPACE, PINNING as PATH, VALIDATING, zoneOf } from "../names.ts";
import { createReviewSafety } from "./reviews.ts";
import { drawShape, type Shape } from "../shape.ts";

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
  object(name, {
    status: { phase: "Running", conditions: [{ type: "Ready", status, lastTransitionTime: "2026-01-01T00:00:00Z" }] },
  });
/** The next pod of the name, which has never been ready. */
const later = (name: string): KubeObject => {
  const { metadata, ...rest } = pod(name, "False");
  return { ...rest, metadata: { ...metadata, uid: "later" } };
};
const ending = (name: string): KubeObject => {
  const { metadata, ...rest } = pod(name);
  return { ...rest, metadata: { ...metadata, deletionTimestamp: "2026-01-01T00:00:00Z" } };
};
/** Made anew in the place of one that was ready. */
const came = (name: string): KubeObject => {
  const { metadata, ...rest } = pod(name);
  return { ...rest, metadata: { ...metadata, uid: "successor" } };
};
const started = (name: string): KubeObject => {
  const startedAt = "2026-01-01T00:00:00Z";
  return {
    ...pod(name),
    status: { ...fieldsOf(pod(name)["status"]), containerStatuses: [{ state: { running: { startedAt } } }] },
  };
};
const untimed = (name: string): KubeObject => {
  const conditions = [{ type: "Ready", status: "True" }];
  return { ...pod(name), status: { phase: "Running", conditions } };
};
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
  /** Where it is asked. */
  readonly path?: string;
  /** It is asked again, so long after the first time, and makes a reservation of its own, unless it shares the first one. */
  readonly again?: { readonly ms: number; readonly eviction?: object; readonly isShared?: boolean };
  /** What has been so for as long as all pods have been there. */
  readonly long?: readonly KubeObject[];
  /** For which all pods have been there before that. */
  readonly waitMs?: number;
  /** Why it denies; it allows by default. */
  readonly denial?: string;
}

function play(given: Play): string {
  const { shape, before = [], meanwhile = [], after = [], eviction, denial, reserves, path = PATH, again } = given;
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
  write([budget(), zone(A), zone(B), ...pods, ...(given.long ?? [])]);
  now += given.waitMs ?? 0;
  write(before);
  now += 1000;
  const review = (one: object | undefined, own: () => KubeObject | undefined): void => {
    const request = { uid: "r", name: POD, object: one };
    safety.onArrival(path, JSON.stringify({ request }), "webhooks-1");
    write(meanwhile);
    now += 1;
    for (const read of ["zoneawarepoddisruptionbudgets", "pods"])
      safety.onRequest({ actor: "webhooks-1", call: "" }, "GET", `/api/v1/namespaces/${NAMESPACE}/${read}?limit=500`);
    write(after);
    const written = denial === undefined ? own() : undefined;
    if (written) write([written]);
    now += 1;
    const response = { uid: "r", allowed: denial === undefined, status: { message: denial } };
    const answer = JSON.stringify({ response });
    safety.onReview({ path, status: 200, sent: JSON.stringify({ request }), answer });
  };
  review(eviction, () => {
    const stored = [...before, ...meanwhile, ...after].findLast(({ metadata }) => metadata.name === BUDGET) ?? budget();
    const own = fieldsOf(dig(reserve(POD), "status", "disruptedPods"));
    const status = { disruptedPods: { ...fieldsOf(dig(stored, "status", "disruptedPods")), ...own } };
    return reserves ?? { ...stored, status };
  });
  if (!again) return violations.join("; ");
  now += again.ms;
  review(again.eviction, () => (again.isShared ? undefined : reserve(POD, { at: 1 })));
  return violations.join("; ");
}

describe("the oracle of what webhooks let go", () => {
  const PARTITIONED = { partitioned: true };
  const PINNED = { deleteOptions: { preconditions: { uid: POD } } };
  const DELAY = { validating: false, older: false, delaySeconds: 60, aheadMs: 0 };
  const DELAYED = { shape: { ...PARTITIONED, evictions: DELAY }, waitMs: 100_000 };
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
    [
      "one while what was reserved is over, and then goes",
      { before: [reserve(`${B}-0`, { at: -130_000 })], after: [pod(`${B}-0`, "False")] },
      /^$/,
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
    ["a denial for no pod at all", { denial: " in ingester-zone-b" }, /denies to let ingester-zone-a-0/],
    ["an old reservation that is shared", { again: { ms: 60_000, isShared: true } }, /^$/],
    ["one that ends too soon", { again: { ms: 90_000, isShared: true } }, /which is reserved for \d+ ms more/],
    [
      "the eviction of whatever pod has the name",
      { path: VALIDATING, before: [{ ...ending(POD) }], reserves: budget() },
      /lets whatever pod is ingester-zone-a-0 go, which ends already/,
    ],
    [
      "the eviction of a pod that ends",
      { path: VALIDATING, before: [{ ...ending(POD) }], reserves: budget(), eviction: PINNED },
      /^$/,
    ],
    ["two of whatever pod has the name at once", { path: VALIDATING, again: { ms: 1000 } }, /go twice at once/],
    ["two of that long after each other", { path: VALIDATING, again: { ms: 16_000 } }, /^$/],
    [
      "one of a pod after one of whatever has the name",
      { path: VALIDATING, again: { ms: 1000, eviction: PINNED, isShared: true } },
      /go twice at once/,
    ],
    [
      "two of the same pod",
      { path: VALIDATING, eviction: PINNED, again: { ms: 1000, eviction: PINNED, isShared: true } },
      /^$/,
    ],
    [
      "one of whatever has the name by the reservation of another",
      { path: VALIDATING, eviction: PINNED, again: { ms: 30_000, isShared: true } },
      /go by an earlier reservation/,
    ],
    [
      "one of whatever has the name while the rollout may delete the pod",
      { path: VALIDATING, before: [reserve(POD, { by: "reconciler-1_x" })], waitMs: 1000 },
      /which the rollout may delete/,
    ],
    ["one whose peer is ready for a moment", { ...DELAYED, before: [came(`${B}-0`)] }, /-b-0 are missing/],
    ["one whose peer has been ready for as long as it must", { ...DELAYED }, /^$/],
    ["one whose peer has started again", { ...DELAYED, before: [started(`${B}-0`)] }, /-b-0 are missing/],
    ["one whose peer nobody knows for how long", { ...DELAYED, before: [untimed(`${B}-0`)] }, /-b-0 are missing/],
    [
      "a denial while nobody knows since when a peer is ready",
      { ...DELAYED, long: [untimed(`${B}-0`)], denial: "1 pod not ready in partition 0" },
      /^$/,
    ],
    [
      "a denial once all are known to be ready for long",
      { ...DELAYED, denial: "1 pod not ready in partition 0" },
      /denies/,
    ],
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
    ["one that its zone is about to lose", missed(FREE, zone(B, 1), reserve(`${B}-1`)), `${B}-1 is missing`],
    [
      "not one that has never served",
      missed(FREE, zone(B, 1), later(`${B}-1`), reserve(`${B}-1`, { uid: "later" })),
      undefined,
    ],
    ["a peer", missed(PARTITIONED, pod(`${B}-1`, "False")), `${B}-1 is missing, as many peers as may be`],
    ["not the peer of a pod that stays", missed(PARTITIONED, pod(`${B}-0`, "False")), undefined],
    ["a peer that is to go", missed(PARTITIONED, reserve(`${B}-1`)), `${B}-1 is missing, as many peers as may be`],
    ["not one that has been to go for too long", missed(PARTITIONED, reserve(`${B}-1`, { at: -130_000 })), undefined],
    [
      "a peer that is ready for a moment",
      missed(DELAYED.shape, came(`${B}-1`)),
      `${B}-1 is missing, as many peers as may be`,
    ],
    ["not a peer that is not there", missed(PARTITIONED, gone(`${B}-1`)), undefined],
  ] as const)
    it(`knows that a downscale misses ${name}`, () => assert.equal(found, says));
});
