import assert from "node:assert/strict";
import { it } from "node:test";
import { untilOf } from "../../../cli/output/age.ts";

const NOW = Date.parse("2026-11-22T03:00:00Z");
const CASES: readonly (readonly [at: string | undefined, shown: string])[] = [
  ["2026-11-22T03:04:30Z", "in 4m30s"],
  ["2026-11-22T03:00:00Z", "now"],
  ["2026-11-22T02:59:00Z", "now"],
  ["2026-11-22T02:58:59Z", ""],
  [undefined, ""],
];
for (const [at, shown] of CASES)
  it(`what lasts until ${at} is shown as "${shown}" at 03:00`, () => assert.equal(untilOf(at, NOW), shown));
