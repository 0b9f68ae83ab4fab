/** The oracle of a process's own writes, against histories that it must condemn, and those next to them. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createOwnWrites } from "./own-writes.ts";

interface History {
  /** The version by which the zone is written again. */
  readonly by?: number;
  readonly set?: string;
  readonly fault?: string;
  readonly stoodStillMs?: number;
  /** Who has written version 7. */
  readonly writer?: string;
}

function judge({ by = 6, set = "a", fault, stoodStillMs = 0, writer = "reconciler-1" }: History): string {
  const violations: string[] = [];
  const actor = "reconciler-1";
  const oracle = createOwnWrites({
    zones: ["a"],
    violated: (what) => violations.push(what),
    now: () => 0,
    processes: () => [{ name: actor, stoodStillMs: () => stoodStillMs } as never],
  });
  if (fault !== undefined) oracle.onFault(fault);
  const object = { metadata: { name: set, resourceVersion: "7" } };
  oracle.onEvent({ type: "MODIFIED", resource: "statefulsets.apps", object } as never, { actor: writer, call: "" });
  const body = JSON.stringify({ metadata: { resourceVersion: String(by) } });
  oracle.onSent({ actor, call: "PATCH" }, "PATCH", `/apis/apps/v1/namespaces/x/statefulsets/${set}/status`, body);
  return violations.join();
}

describe("the oracle of a process's own writes", () => {
  for (const [name, history, expected] of [
    ["a write by an older version than it has written", {}, /by version 6, and has written 7 itself/],
    ["one by that version", { by: 7 }, undefined],
    ["one after another process has written", { writer: "reconciler-2" }, undefined],
    ["one of a StatefulSet that is no zone", { set: "db" }, undefined],
    ["one whose answer was lost", { fault: "answerLost at reconciler PATCH statefulsets/status" }, undefined],
    ["one after a fault of others", { fault: "answerLost at webhooks PATCH statefulsets/status" }, /itself/],
    ["one of a process that has stood still", { stoodStillMs: 1 }, undefined],
  ] as const satisfies readonly (readonly [string, History, RegExp | undefined])[])
    it(`${expected ? "condemns" : "allows"} ${name}`, () => assert.match(judge(history), expected ?? /^$/));
});
