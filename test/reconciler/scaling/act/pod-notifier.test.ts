import type { LogNote } from "../../../../reconciler/model/outcome.ts";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { RolloutError } from "../../../../infra/errors.ts";
import type { PodHttp } from "../../../../infra/pod-http.ts";
import { createPodNotifier } from "../../../../reconciler/scaling/act/pod-notifier.ts";
import { zone } from "../../../builders/groups.ts";

const pods = (count: number) => ({
  count,
  *[Symbol.iterator]() {
    for (let i = 0; i < count; i++) yield { pod: `p-${i}`, url: `http://p-${i}/` };
  },
});

function stage(send: PodHttp["send"] = async () => ({ status: 200, body: "" })) {
  const sent: string[] = [];
  const notes: LogNote[] = [];
  const time = { now: 0 };
  const over = new AbortController();
  const http: PodHttp = {
    send: (method, url, request) => {
      sent.push(`${method} ${new URL(url).host}`);
      return send(method, url, request);
    },
  };
  const notifier = createPodNotifier({
    http,
    clock: { monotonic: () => time.now },
    onNote: (note) => notes.push(note),
    signal: over.signal,
  });
  return { notifier, sent, notes, time, over };
}

/** Answers only when the request is cancelled. */
const never: PodHttp["send"] = (_method, _url, { signal }) =>
  new Promise((_resolve, reject) =>
    signal?.addEventListener("abort", () => reject(new RolloutError("Cancelled", "cancelled"))),
  );

describe("cancelling the preparation of pods that stay", () => {
  it("is repeated after half a minute, or at once for another number of pods", async () => {
    const { notifier, sent, time } = stage();
    const notify = async (count: number): Promise<number> => {
      await notifier.cancelPreparation(zone(), pods(count));
      await notifier.idle();
      return sent.splice(0).length;
    };
    assert.deepEqual([await notify(3), await notify(3), await notify(2), await notify(3)], [3, 0, 2, 3]);
    time.now += 30_000;
    assert.equal(await notify(3), 3);
  });

  it("calls each of many pods once a round, though they confirm while others are called", async () => {
    const { notifier, sent, time } = stage();
    for (let round = 0; round < 2; round++) {
      await notifier.cancelPreparation(zone(), pods(40));
      await notifier.idle();
      assert.equal(sent.splice(0).length, 40);
      time.now += 30_000;
    }
  });

  it("continues in parallel with the tick, and ends before fewer pods are notified: some are to be removed now", async () => {
    const { notifier, sent } = stage(never);
    await notifier.cancelPreparation(zone(), pods(3));
    await notifier.cancelPreparation(zone(), pods(2));
    assert.equal(sent.length, 5);
  });

  it("waits, before fewer pods are notified, for requests in flight, even for cancelled ones that end late", async () => {
    const arrived = Promise.withResolvers<{ status: number; body: string }>();
    const { notifier } = stage(() => arrived.promise);
    await notifier.cancelPreparation(zone(), pods(3));
    let over = false;
    const shrinking = notifier.cancelPreparation(zone(), pods(2)).then(() => (over = true));
    for (let i = 0; i < 5; i++) await new Promise(setImmediate);
    assert.equal(over, false, "a DELETE is still on its way");
    arrived.resolve({ status: 200, body: "" });
    await shrinking;
  });

  it("ends with the run", async () => {
    const { notifier, over, notes } = stage(never);
    await notifier.cancelPreparation(zone(), pods(3));
    over.abort();
    await notifier.idle();
    assert.deepEqual(notes, []);
  });

  it("reaches all pods that answer at once, whichever others are silent, and says how many did not confirm", async () => {
    const { notifier, sent, notes } = stage(async (_method, url, { timeoutMs = 5000 }) => {
      if (Number(/p-(\d+)/.exec(url)?.[1]) >= 16) return { status: 200, body: "" };
      await new Promise((resolve) => setTimeout(resolve, timeoutMs / 100));
      throw new RolloutError("Timeout", `no answer within ${timeoutMs} ms`);
    });
    await notifier.cancelPreparation(zone(), pods(40));
    await new Promise((resolve) => setTimeout(resolve, 25));
    const living = sent.filter((call) => Number(/p-(\d+)/.exec(call)?.[1]) >= 16);
    assert.equal(new Set(living).size, 24);
    await notifier.idle();
    assert.match(
      notes[0]?.text ?? "",
      /: 16 pods did not confirm that their preparation was cancelled, the first: no answer within 5000 ms$/,
    );
  });

  /** Pods p-0 to p-9 answer in 1.2 s, all others never; a second lasts 2 ms. */
  const slow: PodHttp["send"] = async (_method, url, { timeoutMs = 5000, signal }) => {
    const isSlow = Number(/p-(\d+)/.exec(url)?.[1]) < 10;
    const ms = isSlow ? Math.min(1200, timeoutMs) : timeoutMs;
    await new Promise((resolve) => setTimeout(resolve, ms / 500));
    if (signal?.aborted) throw new RolloutError("Cancelled", "cancelled");
    if (isSlow && timeoutMs > 1200) return { status: 200, body: "" };
    throw new RolloutError("Timeout", `no answer within ${timeoutMs} ms`);
  };

  it("lets a round come to its end, although it lasts longer than half a minute: slow pods confirm", async () => {
    const confirmed = new Set<string>();
    const { notifier, sent, time } = stage(async (method, url, request) => {
      const answer = await slow(method, url, request);
      confirmed.add(url);
      return answer;
    });
    for (let asked = 0; asked < 10; asked++) {
      await notifier.cancelPreparation(zone(), pods(40));
      time.now += 31_000;
    }
    await notifier.idle();
    assert.equal(confirmed.size, 10);
    assert.ok(sent.length <= 80, `one round asks each of 40 pods twice at most, not ${sent.length} times`);
  });

  it("calls at most 4 pods of a zone again at once that were silent", async () => {
    let [again, most] = [0, 0];
    const { notifier } = stage(async (_method, _url, { timeoutMs }) => {
      const isAgain = timeoutMs === undefined;
      if (isAgain) most = Math.max(most, ++again);
      await new Promise((resolve) => setTimeout(resolve, 1));
      if (isAgain) again--;
      throw new RolloutError("Timeout", "no answer");
    });
    await notifier.cancelPreparation(zone(), pods(20));
    await notifier.idle();
    assert.equal(most, 4);
  });

  it("keeps at most 16 requests in flight over all zones", async () => {
    let inFlight = 0;
    let most = 0;
    const { notifier } = stage(async () => {
      most = Math.max(most, ++inFlight);
      await new Promise((resolve) => setImmediate(resolve));
      inFlight--;
      return { status: 200, body: "" };
    });
    await Promise.all(["a", "b", "c"].map((name) => notifier.cancelPreparation(zone({ name }), pods(20))));
    await notifier.idle();
    assert.equal(most, 16);
  });

  it("logs the locked preparations and the failures, in one line each", async () => {
    const { notifier, notes } = stage(async (_method, url) => ({ status: url.includes("p-0") ? 409 : 500, body: "" }));
    await notifier.cancelPreparation(zone(), pods(3));
    await notifier.idle();
    assert.deepEqual(
      notes.map(({ level, text }) => [level, text]),
      [
        ["info", "ingester-zone-a: the preparation of p-0 is locked (409)"],
        [
          "warn",
          "ingester-zone-a: 2 pods did not confirm that their preparation was cancelled, the first: p-1 answered 500",
        ],
      ],
    );
  });
});
