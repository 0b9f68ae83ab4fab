/** A reason to wait is one row of REASONS (reconciler/model/decision.ts): here is what the compiler does not see. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { hold, type Reason, type ReasonFacts, REASONS } from "../../reconciler/model/decision.ts";
import { draftEvents } from "../../reconciler/report/events.ts";

const ROWS: readonly [reason: string, facts: ReasonFacts][] = Object.entries(REASONS);

it("a hold that lasts longer than its patience has an Event of its type", () => {
  const zone = { kind: "StatefulSet", namespace: "default", name: "zone-a", uid: "1" } as const;
  for (const [reason, facts] of ROWS) {
    const common = { namespace: "default", group: "group", zones: [], scalingHolds: [], notes: [] };
    const outcome = { ...common, state: "held", hold: hold(reason as Reason, "", [zone]) } as const;
    assert.equal(draftEvents(outcome, undefined, () => facts.patienceMs - 1).length, 0);
    const [draft] = draftEvents(outcome, undefined, () => facts.patienceMs);
    assert.equal(draft?.type, facts.requested ? "Normal" : "Warning", reason);
  }
});
