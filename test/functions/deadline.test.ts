/** Handlers that fail, take too long, or are called by a client that disconnects. */
import assert from "node:assert/strict";
import { request as open } from "node:http";
import { describe, it, test } from "node:test";
import type { Webhook } from "../../functions/http/webhook.ts";
import { systemClock } from "../../infra/clock.ts";
import { hasCode } from "../../infra/errors.ts";
import { reviewText, serve } from "./http.ts";
import { request, webhookOf } from "./samples.ts";

describe("a handler that fails", () => {
  const NOT_NOW = { uid: "u-1", allowed: false, status: { code: 429, message: "not now" } };
  const CASES: readonly [string, Webhook["handle"], string, RegExp][] = [
    [
      "by an error",
      () => Promise.reject(new TypeError("x is not a function at /src/secret.ts:1")),
      "",
      /not a function/,
    ],
    ["by something that is no error", () => Promise.reject(null), "", /null/],
    ["by silence until its deadline", () => new Promise(() => {}), "?timeout=1s", /no answer within 900 ms/],
  ];
  for (const [name, handle, query, was] of CASES)
    it(`${name} has its webhook's own answer, and the log has the cause`, async (t) => {
      const { post, entries, metrics } = await serve(t, webhookOf(handle));
      const { status, text } = await post(reviewText(request), { query });
      assert.equal(status, 200);
      assert.deepEqual((JSON.parse(text) as { response: object }).response, NOT_NOW);
      assert.partialDeepStrictEqual(entries, [
        { level: "error", msg: "pod eviction denied", reason: "Fault", code: 429 },
      ]);
      assert.match(String(entries[0]?.["was"]), was);
      assert.match(
        await metrics.render(),
        /webhook_answers_total\{webhook="podEviction",result="fault",reason="Fault"\} 1\n/,
      );
    });
});

test("a webhook whose answer to an error throws, too, does not crash the process, and its caller gets an answer", async (t) => {
  const broken: Webhook = {
    ...webhookOf(() => Promise.reject(new Error("one"))),
    onFault: () => assert.fail("two at /src/secret.ts"),
  };
  const { post, entries } = await serve(t, broken);
  const { status, text } = await post(reviewText(request));
  assert.deepEqual([status, text], [500, "internal error\n"]);
  assert.equal(entries[0]?.msg, "unexpected error; the request is answered with 500");
});

describe("the deadline", () => {
  const CASES: readonly [string, string, number, number][] = [
    ["is 90 % of the caller's timeout", "?timeout=2s", 10_000, 1800],
    ["is 90 % of the longest, when the caller grants more", "?timeout=30s", 10_000, 9000],
    ["is 90 % of the longest, when the caller says nothing", "", 5000, 4500],
    ["does not follow nonsense", `?timeout=${"9".repeat(10_000)}h`, 10_000, 9000],
    ["does not follow a negative one", "?timeout=-1s", 10_000, 9000],
    ["does not follow what is no query", "?timeout=%&%=?timeout=1s", 10_000, 9000],
  ];
  for (const [name, query, requestTimeoutMs, expected] of CASES)
    it(name, async (t) => {
      const before = systemClock.monotonic();
      let deadlineAt = 0;
      const webhook = webhookOf(async (_request, context) => ((deadlineAt = context.deadlineAt), { allowed: true }));
      await (await serve(t, webhook, { requestTimeoutMs })).post(reviewText(request), { query });
      const after = systemClock.monotonic();
      assert.ok(before + expected <= deadlineAt && deadlineAt <= after + expected, String(deadlineAt - before));
    });

  it("fires the handler's signal", async (t) => {
    const fired = Promise.withResolvers<unknown>();
    const webhook = webhookOf((_request, { signal }) => {
      signal.addEventListener("abort", () => fired.resolve(signal.reason));
      return new Promise(() => {});
    });
    await (await serve(t, webhook)).post(reviewText(request), { query: "?timeout=1s" });
    assert.ok(hasCode(await fired.promise, "Timeout"));
  });

  it("is immediate if the caller disconnects", async (t) => {
    const fired = Promise.withResolvers<unknown>();
    const called = Promise.withResolvers<void>();
    const webhook = webhookOf((_request, { signal }) => {
      signal.addEventListener("abort", () => fired.resolve(signal.reason));
      called.resolve();
      return new Promise(() => {});
    });
    const { port } = await serve(t, webhook);
    const headers = { "content-type": "application/json" };
    const outgoing = open({ port, host: "127.0.0.1", method: "POST", headers }).on("error", () => {});
    outgoing.end(reviewText(request));
    await called.promise;
    outgoing.destroy();
    assert.ok(hasCode(await fired.promise, "Cancelled"));
  });
});
