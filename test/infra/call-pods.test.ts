import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { callLivingFirst, callPods, type PodCallOptions } from "../../infra/call-pods.ts";
import { hasCode, messageOf, RolloutError } from "../../infra/errors.ts";
import type { PodHttp } from "../../infra/pod-http.ts";

interface Target {
  readonly url: string;
}

/** Calls so many pods, which answer with `answer` of their number; resolves with the results. */
async function call(
  count: number,
  answer: (pod: number) => number | Error,
  more: Partial<PodCallOptions<Target>> = {},
) {
  const failures: string[] = [];
  let seen = 0;
  let inFlight = 0;
  let most = 0;
  const http: PodHttp = {
    async send(_method, url, { signal }) {
      seen++;
      most = Math.max(most, ++inFlight);
      await new Promise(setImmediate);
      inFlight--;
      if (signal?.aborted) throw new RolloutError("Cancelled", "cancelled");
      const answered = answer(Number(url));
      if (answered instanceof Error) throw answered;
      return { status: answered, body: "" };
    },
  };
  function* targets(): Generator<Target> {
    for (let pod = 0; pod < count; pod++) yield { url: String(pod) };
  }
  const done = await callPods({
    http,
    method: "POST",
    namespace: "n",
    targets: targets(),
    signal: new AbortController().signal,
    onFailure: ({ url }, error) =>
      void failures.push(`${url} ${hasCode(error, "Cancelled") ? "cancelled" : messageOf(error)}`),
    ...more,
  });
  assert.equal(inFlight, 0, "no request is left in flight");
  return { done, seen, most, failures };
}

describe("calling pods", () => {
  it("calls all pods, at most 32 at once, and reports each failure", async () => {
    const { done, seen, most, failures } = await call(100, (pod) => (pod % 50 === 7 ? 500 : 204));
    assert.deepEqual([done, seen, most, failures], [false, 100, 32, ["7 it answered 500", "57 it answered 500"]]);
    assert.equal((await call(100, () => 299)).done, true);
    assert.equal((await call(40, () => 200, { atOnce: 3 })).most, 3);
  });

  it("ends with the first failure if that is requested, and reports only that one", async () => {
    const { done, seen, failures } = await call(10_000, () => new RolloutError("Unreachable", "gone"), {
      stopAtFailure: true,
    });
    assert.deepEqual([done, failures.length, failures[0]], [false, 1, "0 gone"]);
    assert.ok(seen <= 32, String(seen));
  });

  it("counts an answer as failed if its reader throws", async () => {
    const onAnswer = ({ url }: Target): void => {
      if (url === "1") throw new Error("nonsense");
    };
    assert.deepEqual((await call(3, () => 500, { onAnswer })).failures, ["1 nonsense"]);
  });

  it("calls no pod once `mayCall` is false, regardless of calls in flight", async () => {
    let checks = 0;
    const { done, seen, failures } = await call(1000, () => 200, { mayCall: () => ++checks <= 40 });
    assert.deepEqual([done, seen], [false, 40]);
    assert.match(failures[0] ?? "", /the lease of its rollout group is no longer ours/);
  });

  it("ends with its caller, and counts as not done", async () => {
    const stop = new AbortController();
    const { done, seen } = await call(1000, (pod) => (pod === 40 && stop.abort(), 200), { signal: stop.signal });
    assert.equal(done, false);
    assert.ok(seen < 200, String(seen));
    assert.deepEqual(await call(3, () => 200, { signal: stop.signal }), {
      done: false,
      seen: 0,
      most: 0,
      failures: [],
    });
  });
});

/** Pods 0 to `count` - 1, of which some are silent: they answer nothing within the usual time, or only after a second. */
function podsOf(count: number, { silent = 0, slow = 0 }) {
  const called: { pod: number; isQuick: boolean }[] = [];
  const failures: number[] = [];
  const http: PodHttp = {
    async send(_method, url, { timeoutMs }) {
      const pod = Number(url);
      const isQuick = timeoutMs !== undefined;
      assert.ok(!isQuick || timeoutMs === 1000);
      called.push({ pod, isQuick });
      const isLate = pod < silent || (isQuick && pod < silent + slow);
      await new Promise((resolve) => (isLate ? setTimeout(resolve, isQuick ? 2 : 10) : setImmediate(resolve)));
      if (isLate) throw new RolloutError("Timeout", "no answer");
      return { status: 200, body: "" };
    },
  };
  const targets = {
    count,
    *[Symbol.iterator]() {
      for (let pod = 0; pod < count; pod++) yield { url: String(pod) };
    },
  };
  const call = (signal = new AbortController().signal, random = () => 0): Promise<boolean> =>
    callLivingFirst({
      http,
      method: "DELETE",
      namespace: "n",
      targets,
      atOnce: 16,
      signal,
      random,
      onFailure: ({ url }) => void failures.push(Number(url)),
    });
  return { call, called, failures };
}

describe("calling the pods that answer first", () => {
  it("calls each living pod once, and silent ones again once it has called all others", async () => {
    const { call, called, failures } = podsOf(40, { silent: 16 });
    assert.equal(await call(), false);
    const first = called.filter(({ isQuick }) => isQuick).map(({ pod }) => pod);
    assert.deepEqual(
      first,
      Array.from({ length: 40 }, (_, pod) => pod),
    );
    const last = called.findLastIndex(({ isQuick }) => isQuick);
    const meanwhile = called.slice(0, last).filter(({ isQuick }) => !isQuick).length;
    assert.equal(meanwhile, 0);
    const again = called.filter(({ isQuick }) => !isQuick).map(({ pod }) => pod);
    const silent = Array.from({ length: 16 }, (_, pod) => pod);
    assert.deepEqual([again.toSorted((a, b) => a - b), failures.toSorted((a, b) => a - b)], [silent, silent]);
  });

  it("gives a pod that needs more than a second the usual time, and has then reached all", async () => {
    const { call, called, failures } = podsOf(40, { slow: 16 });
    assert.deepEqual([await call(), called.length, failures], [true, 56, []]);
  });

  it("reaches all living pods in the end, although each call ends before it has come past the silent ones", async () => {
    const { call, called } = podsOf(500, { silent: 400 });
    for (let i = 0; i < 20; i++) {
      const over = new AbortController();
      const start = called.length;
      const watch = setInterval(() => called.length >= start + 60 && over.abort(), 1);
      await call(over.signal, () => i / 20);
      clearInterval(watch);
    }
    assert.equal(new Set(called.filter(({ pod }) => pod >= 400).map(({ pod }) => pod)).size, 100);
  });

  it("calls each pod once, wherever it begins", async () => {
    for (const random of [0, 0.5, 0.999]) {
      const { call, called } = podsOf(7, {});
      assert.equal(await call(undefined, () => random), true);
      assert.deepEqual(
        [called[0]?.pod, new Set(called.map(({ pod }) => pod)).size, called.length],
        [Math.floor(random * 7), 7, 7],
      );
    }
  });
});
