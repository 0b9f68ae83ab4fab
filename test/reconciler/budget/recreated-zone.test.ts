import assert from "node:assert/strict";
import { it } from "node:test";
import { planDenialCheck, checkDenial, findBlocking } from "../../../reconciler/budget/denial-cache.ts";
import { snapshot } from "./builders.ts";

it("a missing pod blocks an eviction only as long as its StatefulSet has not been recreated", () => {
  const seen = snapshot({ pod: "zone-a-0", zones: { b: { pods: { 2: null } } } });
  const claim = planDenialCheck(seen.pod.name, findBlocking(seen.zones, seen, 0), 4);
  const [blocker] = claim?.blocking ?? [];
  assert.ok(claim && blocker);
  const prove = (uid: string): string | undefined =>
    checkDenial(claim, [{ blocker, pod: undefined, zone: { ...blocker.zone, uid } }], seen);
  assert.notEqual(prove(blocker.zone.uid), undefined);
  assert.equal(prove("recreated"), undefined);
});
