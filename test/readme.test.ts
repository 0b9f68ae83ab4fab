import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { METRICS } from "../infra/metrics/metric-table.ts";
import { type Variable, VARIABLE_ROWS } from "../infra/config/variables.ts";
import { ANNOTATIONS, LABELS } from "../reconciler/model/annotations.ts";
import { REASONS } from "../reconciler/model/decision.ts";

const readme = readFileSync(join(import.meta.dirname, "../README.md"), "utf8");

function rowOf(name: string, { default: value, fallback, schema, meaning, allowed, oldName }: Variable): string {
  const stated = value ?? fallback;
  const unset = schema.safeParse(undefined).success ? "" : "required";
  const old = oldName === undefined ? "" : `; \`${oldName}\` is its old name`;
  return `| \`${name}\` | ${stated === undefined ? unset : `\`${stated}\``} | ${meaning}; ${allowed}${old} |`;
}

describe("the README", () => {
  const names = [
    ...VARIABLE_ROWS.map(([name]) => name),
    ...Object.values(METRICS).map(({ name }) => name),
    ...Object.values(LABELS),
    ...Object.values(ANNOTATIONS),
    ...Object.keys(REASONS),
  ];
  for (const name of names) it(`tells ${name}`, () => assert.ok(readme.includes(`\`${name}\``)));
  for (const [name, row] of VARIABLE_ROWS) {
    it(`tells of ${name} what the table of variables says`, () => assert.ok(readme.includes(rowOf(name, row)), rowOf(name, row)));
  }
});
