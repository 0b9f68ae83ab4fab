import assert from "node:assert/strict";
import { it } from "node:test";
import { buildCase, proveCase, rememberLook } from "../../../reconciler/budget/last-look.ts";
import { snapshot } from "./builders.ts";

it("a pod that was missing speaks against an eviction only as long as its StatefulSet is the one that was seen", () => {
  const seen = snapshot({ pod: "zone-a-0", zones: { b: { pods: { 2: null } } } });
  const claim = buildCase(seen.pod.name, rememberLook(seen.zones, seen, 0), 4);
  const [suspect] = claim?.suspects ?? [];
  assert.ok(claim && suspect);
  const prove = (uid: string): string | undefined => proveCase(claim, [{ suspect, pod: undefined, zone: { ...suspect.zone, uid } }], seen);
  assert.notEqual(prove(suspect.zone.uid), undefined);
  assert.equal(prove("made anew"), undefined);
});
