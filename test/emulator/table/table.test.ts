import assert from "node:assert/strict";
import { test } from "node:test";
import { ageOf, valueAt } from "./columns.ts";

const S = 1000;
const M = 60 * S;
const H = 60 * M;

const AGES: readonly [ms: number, text: string][] = [
  [-S, "0s"],
  [0, "0s"],
  [119 * S, "119s"],
  [2 * M, "2m"],
  [2 * M + 5 * S, "2m5s"],
  [10 * M + 5 * S, "10m"],
  [26 * H, "26h"],
];

for (const [ms, text] of AGES)
  test(`an age of ${ms} ms is ${text}`, () => assert.equal(ageOf(new Date(0).toISOString(), ms), text));

const OBJECT = {
  spec: { replicas: 3 },
  status: {
    conditions: [
      { type: "Stalled", status: "False" },
      { type: "Ready", status: "True" },
    ],
  },
};
for (const [path, value] of [
  [".spec.replicas", 3],
  ['.status.conditions[?(@.type=="Ready")].status', "True"],
  ['.status.conditions[?(@.type=="Other")].status', undefined],
  [".status.missing.deeper", undefined],
] as const)
  test(`a column shows ${value} at ${path}`, () => assert.equal(valueAt(OBJECT, path), value));
