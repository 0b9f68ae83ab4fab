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
  readonly asked: readonly (readonly [secondsAgo: number, request: object])[];
  readonly before?: object;
  readonly after?: object;
  readonly by?: string;
  readonly path?: string;
}

function play({ asked, before = {}, after = { [POD]: { uid: "a" } }, by = "webhooks-1", path = PATH }: Play): string {
  const violations: string[] = [];
  let now = 0;
  const safety = createReservationSafety({ violated: (what) => void violations.push(what), now: () => now });
  for (const [secondsAgo, request] of asked) {
    now = -secondsAgo * 1000;
    safety.onArrival(path, JSON.stringify({ request: { name: POD, ...request } }));
  }
  now = 0;
  const caller = { actor: by, call: "" };
  safety.onEvent({ type: "MODIFIED", resource: BUDGETS, object: budget(after), previous: budget(before) }, caller);
  return violations.join("; ");
}

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
  ];
  for (const [name, given, says] of CASES)
    it(`${says.source === "^$" ? "accepts" : "condemns"} ${name}`, () => assert.match(play(given), says));
});
