/** Many pods, few concurrent calls. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type PodCalls, postPrepare, cancelPreparation } from "../../../../reconciler/downscale/act/pod-calls.ts";
import { systemClock } from "../../../../infra/clock.ts";
import type { PodHttp } from "../../../../infra/pod-http.ts";
import { RolloutError } from "../../../../infra/errors.ts";

const never = new AbortController().signal;

/** Pods 0 to `count` - 1; each answers with `answer` of its number. */
function play(count: number, answer: (pod: number) => number | Error) {
  const seen: string[] = [];
  const failures: string[] = [];
  let inFlight = 0;
  let most = 0;
  const podHttp: PodHttp = {
    async send(method, url) {
      seen.push(`${method} ${url}`);
      most = Math.max(most, ++inFlight);
      await new Promise(setImmediate);
      inFlight--;
      const answered = answer(Number(url));
      if (answered instanceof Error) throw answered;
      return { status: answered, body: "" };
    },
  };
  const endpoints = {
    count,
    *[Symbol.iterator]() {
      for (let pod = 0; pod < count; pod++) yield { url: String(pod) };
    },
  };
  const calls: PodCalls = {
    podHttp,
    clock: systemClock,
    namespace: "n",
    endpoints,
    isOurs: () => true,
    onFailure: (url) => void failures.push(url),
  };
  return { calls, seen, failures, most: () => most };
}

const unreachable = new RolloutError("Unreachable", "gone");

describe("preparing pods", () => {
  const CASES: readonly [string, number, (pod: number) => number | Error, boolean, number | undefined][] = [
    ["none", 0, () => 200, true, 0],
    ["64 that succeed", 64, (pod) => 200 + (pod % 5), true, 64],
    ["64 that fail", 64, () => 500, false, undefined],
    ["64 that cannot be reached", 64, () => unreachable, false, undefined],
    ["64 of which the last fails", 64, (pod) => (pod === 63 ? 300 : 200), false, 64],
    ["the maximum number, of which the third fails", 2 ** 31, (pod) => (pod === 2 ? 500 : 200), false, undefined],
  ];
  for (const [name, count, answer, expected, calls] of CASES)
    it(`${name}: ${expected}`, async () => {
      const stage = play(count, answer);
      assert.equal(await postPrepare(stage.calls, never), expected);
      if (calls === undefined) assert.ok(stage.seen.length <= 64, String(stage.seen.length));
      else assert.equal(stage.seen.length, calls);
      assert.ok(stage.most() <= 32);
      assert.equal(stage.failures.length > 0, !expected);
    });

  it("ends at its deadline, and counts as not prepared", async () => {
    const stop = new AbortController();
    const stage = play(1000, (pod) => (pod === 40 && stop.abort(), 200));
    assert.equal(await postPrepare(stage.calls, stop.signal), false);
    assert.ok(stage.seen.length < 200);
    assert.equal(await postPrepare(stage.calls, stop.signal), false);
  });
});

describe("cancelling the preparation", () => {
  it("calls all of 64 pods, regardless of their answers", async () => {
    const stage = play(64, (pod) => (pod % 2 ? unreachable : 409));
    await cancelPreparation(stage.calls, 5000);
    assert.deepEqual([stage.seen.length, stage.failures.length], [64, 64]);
    assert.ok(stage.seen.every((call) => call.startsWith("DELETE")));
  });
});

describe("pods that another process may call by now", () => {
  for (const [name, tell] of [
    ["are not prepared", (calls: PodCalls) => postPrepare(calls, never)],
    ["are not called to cancel it", (calls: PodCalls) => cancelPreparation(calls, 5000)],
  ] as const)
    it(`${name} any more, and the call counts as not done`, async () => {
      const stage = play(1000, () => 200);
      assert.equal(await tell({ ...stage.calls, isOurs: () => stage.seen.length < 40 }), false);
      assert.equal(stage.seen.length, 40);
    });
});

describe("a call that hangs", () => {
  /** The first pod that is called hangs until its call is cut off, for 2 s at most; the others answer in turn. */
  async function hang(
    answer: (pod: number) => number,
    tell: (calls: PodCalls) => Promise<boolean>,
    isOurs = () => true,
  ) {
    let called = 0;
    let isCutOff: boolean | undefined;
    const { calls } = play(1000, () => 200);
    const podHttp: PodHttp = {
      async send(_method, url, { signal }) {
        if (++called > 1)
          return await new Promise((resolve) => void setImmediate(resolve, { status: answer(Number(url)), body: "" }));
        await systemClock.sleep(2000, signal);
        isCutOff = signal?.aborted === true;
        throw unreachable;
      },
    };
    const isDone = await tell({ ...calls, podHttp, isOurs });
    return { isDone, isCutOff };
  }
  const counted = (most: number): (() => boolean) => {
    let calls = 0;
    return () => ++calls <= most;
  };
  const prepare = (calls: PodCalls): Promise<boolean> => postPrepare(calls, never);
  const cancel = (calls: PodCalls): Promise<boolean> => cancelPreparation(calls, 5000);

  for (const [name, answer, tell, isOurs] of [
    ["to prepare a pod is cut off once another process may call it", () => 200, prepare, counted(40)],
    ["to cancel the preparation is cut off then, too", () => 200, cancel, counted(40)],
    ["to prepare a pod is cut off by the first pod that refuses", (pod: number) => (pod === 40 ? 500 : 200), prepare],
  ] as const)
    it(name, async () => assert.deepEqual(await hang(answer, tell, isOurs), { isDone: false, isCutOff: true }));
});
