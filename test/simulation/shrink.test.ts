import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { drawFrom } from "./draw.ts";
import type { History } from "./play.ts";
import {
  commandOf,
  formatReduction,
  parseReduction,
  type Reduction,
  reduceShape,
  smallerShapes,
  WHOLE_HISTORY,
} from "./reduction.ts";
import { drawShape, type Shape } from "./shape.ts";
import { kindOf, shrink } from "./shrink.ts";

const SHAPE = drawShape(drawFrom(1));
const ACTIONS = [0, 1, 2, 3, 4, 5, 6];
const STRIKES = ["a", "b", "c", "d", "e", "f", "g", "h"];
const WHAT = "two zones at once: ingester-zone-a-0 is taken by reconciler-1 while ingester-zone-b-1 are missing";

/** Plays nothing, and fails as long as `failsWith` is true of what is left. */
const playing =
  (failsWith: (history: History) => string | undefined) =>
  (seed: number, { reduction = WHOLE_HISTORY }: { reduction?: Reduction }): Promise<History> => {
    const history = {
      seed,
      shape: reduceShape(SHAPE, reduction.shape),
      actions: ACTIONS.filter((position) => reduction.actions?.includes(position) ?? true),
      strikes: STRIKES.filter((id) => reduction.strikes?.includes(id) ?? true),
      violations: [] as string[],
    } as unknown as History;
    const what = failsWith(history);
    return Promise.resolve({ ...history, violations: what === undefined ? [] : [what] });
  };
const shrinkWhere = (failsWith: (history: History) => string | undefined, attempts = 400) =>
  shrink({ seed: 7, play: playing(failsWith), attempts, mayGoOn: () => true });

describe("a history that fails is shrunk", () => {
  it("to the actions, faults and zones without which it does not fail", async () => {
    const needs = ({ actions, strikes, shape }: History): boolean =>
      actions.includes(2) && strikes.includes("c") && strikes.includes("g") && shape.zones.length >= 2;
    const shrunk = await shrinkWhere((history) => (needs(history) ? WHAT : undefined));
    assert.deepEqual(shrunk?.history.actions, [2]);
    assert.deepEqual(shrunk?.history.strikes, ["c", "g"]);
    assert.equal(shrunk?.history.shape.zones.length, 2);
    assert.equal(shrunk?.history.shape.replicas, 1);
  });

  it("to one that fails in the same way, whatever else fails on the way", async () => {
    const shrunk = await shrinkWhere(({ strikes }) => (strikes.includes("c") ? WHAT : "a webhook answers 500: {}"));
    assert.deepEqual(shrunk?.history.strikes, ["c"]);
    assert.equal(shrunk?.history.violations[0], WHAT);
  });

  it("within a number of histories", async () => {
    const shrunk = await shrinkWhere(() => WHAT, 3);
    assert.equal(shrunk?.played, 3);
  });

  it("unless it does not fail", async () => assert.equal(await shrinkWhere(() => undefined), undefined));
});

describe("violations", () => {
  it("of a kind differ by names and numbers alone", () => {
    const other =
      "two zones at once: ingester-zone-c-2 is taken by reconciler-9 while ingester-zone-a-0, ingester-zone-a-1 are missing";
    assert.equal(kindOf(other), kindOf(WHAT));
    assert.notEqual(kindOf("2 pods of ingester-zone-a at once, 1 are allowed: ingester-zone-a-0"), kindOf(WHAT));
  });
});

describe("a reduction", () => {
  it("is read from the command that it is written as", () => {
    const reduction = { shape: { zones: "2", budget: "none", prepared: "false" }, actions: [2, 5], strikes: [] };
    assert.equal(
      commandOf(7, reduction),
      "npm run simulate -- --seed 7 --with zones=2,budget=none,prepared=false --actions 2,5 --strikes none",
    );
    const given = { with: "zones=2,budget=none,prepared=false", actions: "2,5", strikes: "none" };
    assert.deepEqual(parseReduction(given), reduction);
    assert.equal(formatReduction(parseReduction({})), "");
  });

  it("leaves out what a shape may be without", () => {
    const whole = {
      ...SHAPE,
      gate: { last: "good" },
      mirrored: { delayMs: 0 },
      certificate: "missing",
    } as unknown as Shape;
    const tried = smallerShapes(whole).map((pair) => pair.join("="));
    for (const given of ["gate=none", "mirrored=none", "certificate=none"]) {
      assert.ok(tried.includes(given), given);
      assert.equal(
        reduceShape(whole, parseReduction({ with: given }).shape)[given.split("=")[0] as keyof Shape],
        undefined,
      );
    }
    assert.ok(!tried.some((text) => /^(?:gate|mirrored|certificate)=(?!none)/.test(text)));
  });

  for (const [given, what] of [
    ["zones=none", /zones cannot be "none"/],
    ["gate=1", /gate cannot be "1"/],
    ["zonen=2", /no shape has zonen/],
    ["faults=0", /no shape has faults/],
    ["zones=two", /zones cannot be "two"/],
  ] as const)
    it(`cannot be ${given}`, () => assert.throws(() => parseReduction({ with: given }), what));
});
