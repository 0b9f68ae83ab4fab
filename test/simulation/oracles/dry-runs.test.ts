import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { BUDGET, BUDGETS, NAMESPACE } from "../names.ts";
import { createDryRunSafety } from "./dry-runs.ts";

const POD = "ingester-zone-a-0";
const budget = (reserved: object) => ({
  apiVersion: "v1",
  kind: "Budget",
  metadata: { name: BUDGET, namespace: NAMESPACE, uid: "b", resourceVersion: "1", creationTimestamp: "" },
  status: { disruptedPods: reserved },
});

interface Play {
  readonly request?: object;
  readonly by?: string;
  readonly key?: string;
  readonly kind?: string;
  readonly before?: object;
  readonly laterMs?: number;
}

function play({
  request = {},
  by = "webhooks-1",
  key = POD,
  kind = "eviction",
  before = {},
  laterMs = 100,
}: Play): string {
  const violations: string[] = [];
  let now = 0;
  const oracle = createDryRunSafety({ violated: (what) => void violations.push(what), now: () => now });
  const review = { request: { name: POD, ...request } };
  oracle.onArrival("/admission/mutate-pod-eviction", JSON.stringify(review));
  now = laterMs;
  const object = budget({ [key]: { kind, uid: "a" } });
  oracle.onEvent({ type: "MODIFIED", resource: BUDGETS, object, previous: budget(before) }, { actor: by, call: "" });
  return violations.join();
}

const DRY = { dryRun: true };
const DRY_ITSELF = { object: { deleteOptions: { dryRun: ["All"] } } };

describe("the oracle of dry runs", () => {
  for (const [name, given, says] of [
    ["what an eviction reserves", {}, /^$/],
    ["what a dry run reserves", { request: DRY }, /webhooks-1 reserves ingester-zone-a-0, which nobody/],
    ["what an eviction that is itself a dry run reserves", { request: DRY_ITSELF }, /which nobody/],
    ["what was asked for long ago", { laterMs: 200_000 }, /which nobody/],
    ["what was reserved before", { request: DRY, before: { [POD]: { uid: "a" } } }, /^$/],
    ["what a reconciler reserves", { request: DRY, by: "reconciler-1" }, /^$/],
    ["what a downscale reserves", { request: DRY, key: "ingester-zone-a/1", kind: "downscale" }, /^$/],
  ] as const)
    it(`${says.source === "^$" ? "accepts" : "condemns"} ${name}`, () => assert.match(play(given), says));
});
