import assert from "node:assert/strict";
import { it } from "node:test";
import { sortBlocks } from "../../../cli/decide/group-state.ts";
import { NOW } from "../../reconciler/plan/builders.ts";

const CASES = [
  { name: "a strategy that must be changed blocks", reason: "UpdateStrategyNotOnDelete", forMs: 0, kind: "blocked" },
  { name: "a failed gate blocks", reason: "GateFailed", forMs: 0, kind: "blocked" },
  {
    name: "a zone that is broken beside the one that rolls blocks",
    reason: "OtherZoneNotReady",
    forMs: 0,
    kind: "blocked",
  },
  { name: "an error blocks", reason: "ReconcileFailed", forMs: 0, kind: "blocked" },
  { name: "pods that are about to be ready are waited for", reason: "ZoneNotReady", forMs: 29_999, kind: "waiting" },
  {
    name: "pods that are not ready for longer than is ordinary block",
    reason: "ZoneNotReady",
    forMs: 30_000,
    kind: "blocked",
  },
  {
    name: "a user's pause is waited for, however long it lasts",
    reason: "ZonePaused",
    forMs: 86_400_000,
    kind: "waiting",
  },
  { name: "a gate's checks are waited for", reason: "GateWaiting", forMs: 3_600_000, kind: "waiting" },
  { name: "a minimum time is waited for", reason: "MinTimeBetweenZones", forMs: 3_600_000, kind: "waiting" },
] as const;

for (const { name, reason, forMs, kind } of CASES)
  it(name, () => {
    const block = { reason, message: "", cause: "", objects: [], since: new Date(NOW - forMs).toISOString() };
    const sorted = sortBlocks(
      { namespace: "test", group: "ingester", zones: [], status: { blocked: [block] }, generation: 1 },
      NOW,
    );
    assert.deepEqual(sorted[kind], [block]);
    assert.equal(sorted.blocked.length + sorted.waiting.length, 1);
  });
