/** The oracle against histories that it must condemn, and those next to them that it must not. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { KubeObject } from "../emulator/store.ts";
import { BUDGETS } from "./names.ts";
import { createReservationSafety } from "./reservations.ts";

const PATH = "/admission/mutate-pod-eviction";
const POD = "ingester-zone-a-0";
const budget = (disruptedPods: object): KubeObject => ({
  apiVersion: "x/v1",
  kind: "ZoneAwarePodDisruptionBudget",
  metadata: { name: "budget", uid: "b", resourceVersion: "1", creationTimestamp: "2026-01-01T00:00:00Z" },
  status: { disruptedPods },
});

interface Play {
  /** Requests that reached a webhook, so many seconds before. */
  readonly asked?: readonly (readonly [secondsAgo: number, request: object])[];
  readonly before?: object;
  readonly after?: object;
  readonly by?: string;
  readonly path?: string;
  /** Between the reservation that was there before, and the write that is judged. */
  readonly ageSeconds?: number;
  readonly objects?: readonly KubeObject[];
}
const object = (name: string, spec: object = {}): KubeObject => ({
  ...budget({}),
  metadata: { ...budget({}).metadata, name, uid: name },
  spec,
});

function play({ asked = [], before = {}, after = { [POD]: { uid: "a" } }, by = "webhooks-1", ...rest }: Play): string {
  const { path = PATH, ageSeconds = 0, objects = [object(POD)] } = rest;
  const violations: string[] = [];
  let now = 0;
  const safety = createReservationSafety({
    violated: (what) => void violations.push(what),
    now: () => now,
    shape: { skewMs: 0 },
    store: () => ({ get: (_, __, name) => objects.find(({ metadata }) => metadata.name === name) }),
  });
  for (const [secondsAgo, request] of asked) {
    now = -secondsAgo * 1000;
    safety.onArrival(path, JSON.stringify({ request: { name: POD, ...request } }));
  }
  now = -ageSeconds * 1000;
  const write = (from: object, to: object, actor: string): void =>
    safety.onEvent(
      { type: "MODIFIED", resource: BUDGETS, object: budget(to), previous: budget(from) },
      { actor, call: "" },
    );
  write(before, before, "human");
  now = 0;
  write(before, after, by);
  return violations.join("; ");
}

/** A reconciler removes what was there. */
const removed = (entry: object, ageSeconds = 0): Play => ({
  before: { [POD]: { uid: POD, ...entry } },
  after: {},
  by: "reconciler-1",
  ageSeconds,
});
const shrinking = (replicas: number): Play => ({
  ...removed({}),
  before: { [`${POD}+`]: { uid: "ingester-zone-a", by: "webhook_x" } },
  objects: [object("ingester-zone-a", { replicas })],
});

describe("the oracle of reservations", () => {
  const [DRY, WET] = [{ dryRun: true }, { dryRun: false }];
  const IN_OPTIONS = { dryRun: false, object: { deleteOptions: { dryRun: ["All"] } } };
  const CASES: readonly (readonly [name: string, given: Play, says: RegExp])[] = [
    ["a reservation for a dry run", { asked: [[1, DRY]] }, /webhooks-1 reserves ingester-zone-a-0/],
    [
      "one for a dry run by the eviction's options",
      { asked: [[1, IN_OPTIONS]] },
      /only tried to be taken in a dry run/,
    ],
    [
      "one for a dry run long after an eviction",
      {
        asked: [
          [300, WET],
          [1, DRY],
        ],
      },
      /only tried/,
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
    ["one for a dry run of a deletion", { asked: [[1, DRY]], path: "/admission/pod-deletion" }, /only tried/],
    ["one for a deletion", { asked: [[1, WET]], path: "/admission/pod-deletion" }, /^$/],
    ["one for a dry run of a downscale", { asked: [[1, DRY]], path: "/admission/prepare-downscale" }, /^$/],
    ["one for an eviction", { asked: [[1, WET]] }, /^$/],
    ["one that was there before", { asked: [[1, DRY]], before: { [POD]: { uid: "a" } } }, /^$/],
    ["one of a zone that shrinks", { asked: [[1, DRY]], after: { "ingester-zone-a-0+": { uid: "a" } } }, /^$/],
    ["one by a reconciler", { asked: [[1, DRY]], by: "reconciler-1" }, /^$/],
    [
      "a webhook's that a reconciler removes",
      removed({ by: "webhook_x" }),
      /reconciler-1 frees the reservation of ingester-zone-a-0 by webhook_x/,
    ],
    ["one that has expired", removed({ by: "webhook_x" }, 120), /^$/],
    ["one of a pod that is gone", { ...removed({ by: "webhook_x" }), objects: [] }, /^$/],
    ["one of a pod whose name another one has", removed({ by: "webhook_x", uid: "before" }), /^$/],
    ["one of the reconciler for a request, which it frees", removed({ by: "webhook_responder_x" }), /^$/],
    ["one of the rollout, which it frees", removed({ by: "reconciler-1_x" }), /^$/],
    [
      "one of the rollout, in whose place a request is reserved",
      { ...removed({ by: "reconciler-1_x" }), after: { [POD]: { uid: POD, by: "webhook_responder_x" } } },
      /takes the place of the reservation of ingester-zone-a-0 by reconciler-1_x/,
    ],
    [
      "one that a webhook writes in the place of a request's",
      { ...removed({ by: "webhook_responder_x" }), after: { [POD]: { uid: POD, by: "webhook_x" } }, by: "webhooks-1" },
      /^$/,
    ],
    ["one of a downscale that may still be stored", shrinking(1), /frees the reservation of ingester-zone-a-0\+/],
    ["one of a downscale that is stored", shrinking(0), /^$/],
  ];
  for (const [name, given, says] of CASES)
    it(`${says.source === "^$" ? "accepts" : "condemns"} ${name}`, () => assert.match(play(given), says));
});
