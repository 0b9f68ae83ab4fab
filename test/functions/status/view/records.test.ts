import assert from "node:assert/strict";
import { it } from "node:test";
import { keyOf, type PageGroup, sortGroups } from "../../../../functions/status/view/records.ts";
import { stored, group } from "../samples.ts";

const ORDER: readonly PageGroup[] = [
  group("blocked-for-long", { phase: "Blocked", holds: [stored({ since: "2026-11-21T00:00:00Z" })] }),
  group("blocked", { phase: "Blocked", holds: [stored()] }),
  group("waiting-for-long", { phase: "Waiting", holds: [stored({ since: "2026-11-21T00:00:00Z" })] }),
  group("paused", { phase: "Paused", holds: [stored()] }),
  group("ready-but-not-scaled", { phase: "Ready", holds: [stored({ phase: "Waiting" })] }),
  group("waiting", { phase: "Waiting", holds: [stored()] }),
  group("rolling-and-held", { phase: "RollingOut", holds: [stored()] }),
  group("rolling", { phase: "RollingOut" }),
  group("a", { phase: "Ready" }),
  group("b", { phase: "Ready" }),
];

it("what is blocked comes first, then what waits, what moves, what is done", () =>
  assert.deepEqual(sortGroups(ORDER.toReversed()).map(keyOf), ORDER.map(keyOf)));
