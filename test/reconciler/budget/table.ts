/** Evictions and how they are answered, one case each. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { VERDICTS } from "../../../reconciler/budget/verdict.ts";
import { decide, type Case } from "./builders.ts";

export type EvictionCase = readonly [name: string, eviction: Case, code: 200 | 400 | 429, message: string];

export const ZONES_MET = "zpdb met across 3 zones";

export function judgeEach(what: string, cases: readonly EvictionCase[]): void {
  describe(what, () => {
    for (const [name, one, code, message] of cases) {
      it(`${name}: ${code} ${message}`, async () => {
        const answer = await decide(one);
        assert.deepEqual([VERDICTS[answer.reason].code, answer.message], [code, message]);
        assert.deepEqual(
          answer.objects.map(({ kind }) => kind),
          ["Pod", "ZoneAwarePodDisruptionBudget"],
        );
      });
    }
  });
}
