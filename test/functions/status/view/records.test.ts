import assert from "node:assert/strict";
import { it } from "node:test";
import { keyOf, type PageGroup, sortGroups } from "../../../../functions/status/view/records.ts";
import { block, group } from "../samples.ts";

const ORDER: readonly PageGroup[] = [
  group("stalled", { phase: "Stalled", blocked: [block()] }),
  group("degraded", { phase: "Degraded" }),
  group("waiting-for-long", { phase: "Waiting", blocked: [block({ since: "2026-11-21T00:00:00Z" })] }),
  group("waiting", { phase: "Waiting", blocked: [block()] }),
  group("paused", { phase: "Paused", blocked: [block()] }),
  group("rolling-and-held", { phase: "RollingOut", blocked: [block()] }),
  group("rolling", { phase: "RollingOut" }),
  group("ready-but-not-scaled", { phase: "Ready", blocked: [block()] }),
  group("a", { phase: "Ready" }),
  group("b", { phase: "Ready" }),
];

it("what is blocked comes first, what is done last", () =>
  assert.deepEqual(sortGroups(ORDER.toReversed()).map(keyOf), ORDER.map(keyOf)));
