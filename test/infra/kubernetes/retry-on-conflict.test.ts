import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type ErrorCode, isSuperseded, RolloutError } from "../../../infra/errors.ts";
import { retryOnConflict, type RetryOptions } from "../../../infra/kubernetes/retry-on-conflict.ts";

/**
 * Attempts that take `eachMs` and fail with these codes in turn, the last one for ever; none after the last resolves.
 */
async function play(fails: readonly ErrorCode[], options: Partial<RetryOptions> = {}, eachMs = 0) {
  let now = 1000;
  const pauses: number[] = [];
  const numbers: number[] = [];
  const clock = { monotonic: () => now, sleep: async (ms: number) => void ((now += ms), pauses.push(ms)) };
  const attempt = async (number: number): Promise<string> => {
    numbers.push(number);
    now += eachMs;
    const code = fails[number - 1];
    if (code) throw new RolloutError(code, `attempt ${number}`);
    return "written";
  };
  const end = await retryOnConflict(attempt, { clock, random: () => 1, ...options }).catch(
    (error: unknown) => (error as Error).message,
  );
  return { end, numbers, pauses };
}

const conflicts = (count: number): ErrorCode[] => Array.from({ length: count }, () => "Conflict" as const);

describe("a retry after a conflict", () => {
  it("costs nothing without one", async () =>
    assert.deepEqual(await play([]), { end: "written", numbers: [1], pauses: [] }));

  it("follows after a pause that doubles", async () =>
    assert.deepEqual(await play(conflicts(4)), {
      end: "written",
      numbers: [1, 2, 3, 4, 5],
      pauses: [20, 40, 80, 160],
    }));

  it("ends with the last error after five attempts", async () =>
    assert.equal((await play(conflicts(9))).end, "attempt 5"));

  it("follows by chance after a shorter pause", async () =>
    assert.deepEqual((await play(conflicts(2), { random: () => 0.5 })).pauses, [10, 20]));

  it("comes after no other error, unless told so", async () => {
    assert.deepEqual(await play(["NotFound"]), { end: "attempt 1", numbers: [1], pauses: [] });
    assert.deepEqual((await play(["Conflict", "Timeout"])).end, "attempt 2");
    assert.deepEqual((await play(["NotFound", "AlreadyExists"], { when: isSuperseded })).end, "written");
  });

  it("begins before the deadline of all attempts, or not at all", async () => {
    const { end, numbers, pauses } = await play(conflicts(9), { call: { deadlineMs: 100 } }, 30);
    assert.deepEqual([end, numbers, pauses], ["attempt 2", [1, 2], [20, 20]]);
  });

  it("does not begin once its caller has gone", async () => {
    const signal = AbortSignal.abort();
    assert.deepEqual(await play(conflicts(9), { call: { signal } }), { end: "attempt 1", numbers: [1], pauses: [] });
  });
});
