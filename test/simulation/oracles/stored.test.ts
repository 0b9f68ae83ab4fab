import assert from "node:assert/strict";
import { it } from "node:test";
import { reservedOn } from "./stored.ts";

const lease = (note: string) => ({
  apiVersion: "coordination.k8s.io/v1",
  kind: "Lease",
  metadata: {
    name: "zonewise-budget-x",
    uid: "x",
    resourceVersion: "1",
    creationTimestamp: "",
    annotations: { "zonewise/disrupted-pods": note },
  },
});

it("a note that nobody can read reserves nothing", () => {
  const noted = { "ingester-zone-a-0": { uid: "a", time: "2026-01-01T00:00:00Z" } };
  assert.deepEqual(reservedOn(lease(JSON.stringify(noted))), noted);
  assert.deepEqual(reservedOn(lease("none")), {});
});
