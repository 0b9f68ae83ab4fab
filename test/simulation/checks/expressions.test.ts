/** The oracle of expressions against what it must condemn, and what is next to it. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { KubeObject } from "../../emulator/store.ts";
import { drawFrom } from "../draw.ts";
import { drawShape } from "../shape.ts";
import { createExpressionSafety, EMPTY, FILLED, FOREIGN, IMPOSSIBLE, NO_GROUP } from "./expressions.ts";
import { createHistory } from "./history.ts";
import { GATE, gateObject, type GateShape } from "./objects.ts";

const SHAPE: GateShape = {
  successWhen: "NoData",
  initialDelaySeconds: 0,
  periodSeconds: 10,
  successThreshold: 1,
  failureThreshold: undefined,
  last: "good",
  when: ["BeforeFirstZone", "BetweenZones"],
  onError: "Wait",
};
const ZONE = "ingester-zone-a";
const gate = (expr: string, spec: object = {}): KubeObject => {
  const object = gateObject(SHAPE, expr);
  return { ...object, spec: { ...(object["spec"] as object), ...spec } } as never;
};
const compared = (when: readonly string[]): object => {
  const check = { name: "errors", query: { expr: "gate" }, baseline: { expr: EMPTY } };
  return { when, checks: [check] };
};

function createOracle(objects: Readonly<Record<string, KubeObject>> = {}) {
  const violations: string[] = [];
  let now = 0;
  const history = createHistory(() => now);
  for (const [name, object] of Object.entries(objects)) history.note(name, object);
  now = 1_000_000;
  const shape = { ...drawShape(drawFrom(1)), zones: [ZONE], gate: SHAPE };
  const oracle = createExpressionSafety({ shape, violated: (what) => violations.push(what), now: () => now, history });
  return { oracle, violations };
}

function review(object: KubeObject, allowed: boolean, oldObject?: KubeObject): string {
  const { oracle, violations } = createOracle();
  const request = { resource: { resource: "rolloutgates" }, object, oldObject };
  const answer = JSON.stringify({ response: { allowed } });
  const path = "/validate-sts-plus-v1alpha1-phasedrollout";
  oracle.onReview({ path, sent: JSON.stringify({ request }), status: 200, answer, lateMs: -1 });
  return violations.join();
}

describe("the oracle of what is admitted of gates", () => {
  const CASES: readonly (readonly [string, KubeObject, boolean, RegExp | undefined, KubeObject?])[] = [
    ["a gate that can be asked", gate(FILLED[0]), true, undefined],
    ["one that cannot", gate(IMPOSSIBLE[1]), true, /can never be answered/],
    ["one that is refused for it", gate(IMPOSSIBLE[1]), false, undefined],
    ["one that was so before", gate(IMPOSSIBLE[1]), true, undefined, gate(IMPOSSIBLE[1])],
    ["a group that no label has", gate(FILLED[1], { group: NO_GROUP }), true, /by the group/],
    ["a comparison with no pods", gate("gate", compared(["BeforeFirstZone"])), true, /a comparison with/],
    ["a comparison with some", gate("gate", compared(["BetweenZones"])), true, undefined],
    ["another grammar that is refused", gate(FOREIGN[0]), false, /is refused for gate default 0/],
    ["another grammar", gate(FOREIGN[0]), true, undefined],
  ];
  for (const [what, object, allowed, expected, old] of CASES)
    it(`${expected ? "condemns" : "accepts"} ${what}`, () =>
      assert.match(review(object, allowed, old), expected ?? /^$/));
});

describe("the oracle of what is asked", () => {
  const zones = (began?: string): Readonly<Record<string, KubeObject>> => ({
    [GATE]: {
      status: { zones: [{ name: ZONE, settledRevision: "old", ...(began !== undefined && { began }) }] },
    } as never,
    [ZONE]: { status: { updateRevision: "old" } } as never,
  });
  const dotted = gate(FILLED[1], { group: "web.v2" });
  const ask = (pods: string): string => `gate{pod=~"${pods}",namespace="zonewise"}`;
  const askDotted = (group: string): string => `gate{pod!~"(?:b-[0-9]+)",group=~"${group}"} offset 60s`;
  const CASES: readonly (readonly [string, KubeObject, string, RegExp | undefined, string?])[] = [
    ["what is written", gate("gate > 0"), "gate > 0", undefined],
    ["what nobody has written", gate("gate > 0"), "gate > 1", /what nobody has written/],
    ["what cannot be asked", gate(IMPOSSIBLE[0]), 'gate{group=""}', /what nobody has written/],
    ["pods", gate(FILLED[0]), ask("(?:b-[0-9]+)"), undefined],
    ["pods of any name", gate(FILLED[0]), ask("(?:)"), /that have no name/],
    ["pods of a zone that was not begun", gate(FILLED[0]), ask(`(?:${ZONE}-[0-9]+)`), /has not begun/],
    ["pods of a zone that was", gate(FILLED[0]), ask(`(?:${ZONE}-[0-9]+)`), undefined, "Now"],
    ["a dot for any character", dotted, askDotted("web.v2"), /what nobody has written/],
    ["a dot for a dot", dotted, askDotted("web[.]v2"), undefined],
  ];
  for (const [what, object, expr, expected, began] of CASES)
    it(`${expected ? "condemns" : "accepts"} ${what}`, () => {
      const { oracle, violations } = createOracle(zones(began));
      oracle.onWritten(object);
      oracle.onAnswer({ at: 0, expr, verdict: "Success" });
      assert.match(violations.join(), expected ?? /^$/);
    });
});
