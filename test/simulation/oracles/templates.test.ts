/** The oracle of templates against histories that it must condemn, and those next to them that it must not. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { KubeObject, StoreEvent } from "../../emulator/store.ts";
import { NAMESPACE } from "../names.ts";
import { createTemplateSafety } from "./templates.ts";

const ZONE = "ingester-zone-a";
const object = (name: string, fields: object, metadata: object = {}): KubeObject => ({
  apiVersion: "v1",
  kind: "Any",
  metadata: { name, namespace: NAMESPACE, uid: name, resourceVersion: "1", creationTimestamp: "", ...metadata },
  ...fields,
});
const READY = { status: { conditions: [{ type: "Ready", status: "True" }] } };
const LABELS = { name: ZONE, "controller-revision-hash": "a" };
const pod = (metadata: object = {}, fields: object = READY): KubeObject =>
  object(`${ZONE}-0`, fields, { labels: LABELS, ...metadata });
const zone = (revision: string): StoreEvent => ({
  type: "MODIFIED",
  resource: "statefulsets.apps",
  object: object(ZONE, { status: { updateRevision: revision } }),
});

/** The update revisions of the zone, a new one every so many seconds, and then the deletion of its pod. */
interface Play {
  readonly revisions: readonly string[];
  readonly seconds?: number;
  readonly by?: string;
  readonly before?: KubeObject;
}

function judge({ revisions, seconds = 0, by = "reconciler-1", before = pod() }: Play): string {
  const violations: string[] = [];
  let now = 0;
  const oracle = createTemplateSafety({
    zones: [ZONE],
    violated: (what) => void violations.push(what),
    now: () => now,
    decidedMs: () => 15_000,
  });
  for (const revision of revisions) {
    oracle.onEvent(zone(revision), undefined);
    now += seconds * 1000;
  }
  const ending = { type: "MODIFIED", resource: "pods", previous: before } as const;
  oracle.onEvent(
    { ...ending, object: pod({ deletionTimestamp: "2026-01-01T00:00:00Z" }) },
    { actor: by, call: "DELETE x" },
  );
  return violations.join("; ");
}

const CASES: readonly (readonly [name: string, play: Play, says: RegExp])[] = [
  [
    "a pod with its zone's template that the reconciler deletes",
    { revisions: ["a"] },
    /^reconciler-1 deletes ingester-zone-a-0, which has its zone's template$/,
  ],
  ["an outdated one", { revisions: ["b"] }, /^$/],
  ["one whose template was taken back a moment ago", { revisions: ["b", "a"], seconds: 5 }, /^$/],
  [
    "one whose template was taken back long ago",
    { revisions: ["b", "a"], seconds: 20 },
    /which has its zone's template/,
  ],
  ["one that is not ready", { revisions: ["a"], before: pod({}, {}) }, /^$/],
  ["one that a person deletes", { revisions: ["a"], by: "human" }, /^$/],
];

describe("the oracle of templates", () => {
  for (const [name, play, says] of CASES)
    it(`${says.source === "^$" ? "accepts" : "condemns"} ${name}`, () => assert.match(judge(play), says));
});
