import assert from "node:assert/strict";
import { test } from "node:test";
import { valuesAt } from "./custom.ts";
import { humanDuration } from "./duration.ts";

const S = 1000;
const M = 60 * S;
const H = 60 * M;
const D = 24 * H;

const AGES: readonly [ms: number, text: string][] = [
  [-5 * S, "<invalid>"],
  [0, "0s"],
  [119 * S, "119s"],
  [2 * M, "2m"],
  [2 * M + 5 * S, "2m5s"],
  [10 * M + 5 * S, "10m"],
  [3 * H, "3h"],
  [3 * H + 5 * M, "3h5m"],
  [26 * H, "26h"],
  [50 * H, "2d2h"],
  [9 * D, "9d"],
  [3 * 365 * D, "3y"],
];

for (const [ms, text] of AGES) test(`an age of ${ms} ms is ${text}`, () => assert.equal(humanDuration(ms), text));

const OBJECT = {
  spec: { a: { "b.c": 1 }, list: [{ x: 1 }, { x: 2 }] },
  status: {
    conditions: [
      { type: "Up", status: "False" },
      { type: "Ready", status: "True" },
    ],
  },
};

const PATHS: readonly [path: string, values: unknown[]][] = [
  [".spec.a['b.c']", [1]],
  [".spec.a.b\\.c", [1]],
  [".spec.list[1].x", [2]],
  [".spec.list[*].x", [1, 2]],
  ['.status.conditions[?(@.type=="Ready")].status', ["True"]],
  [".spec.none.deep", []],
];

for (const [path, values] of PATHS) test(`the path ${path} is followed`, () => assert.deepEqual(valuesAt(OBJECT, path), values));
