/** The rim, over real HTTP: what comes in, what goes out, and what never does. */
import assert from "node:assert/strict";
import { request as open } from "node:http";
import { describe, it, test } from "node:test";
import type { AdmissionRequest, Answer, Context, Webhook } from "../../functions/handler.ts";
import { systemClock } from "../../infra/clock.ts";
import { hasCode } from "../../infra/errors.ts";
import { createTokenCheck } from "../../infra/tokens.ts";
import { connect, type Kubeconfig } from "../cluster/conformance/client.ts";
import { connectionOf } from "./connection.ts";
import { reviewText, serve } from "./http.ts";
import { setStage } from "./stage.ts";

const request = {
  uid: "u-1",
  operation: "CREATE",
  subResource: "eviction",
  namespace: "shop",
  name: "web-0",
  dryRun: true,
  kind: { group: "policy", version: "v1", kind: "Eviction" },
  resource: { group: "", version: "v1", resource: "pods" },
  userInfo: { username: "alice" },
  object: { kind: "Eviction" },
};

function webhookOf(handle: (request: AdmissionRequest, context: Context) => Promise<Answer>): Webhook {
  return {
    name: "podEviction",
    paths: ["/admission/pod-eviction", "/pods/eviction"],
    handle,
    onFault: (error) => ({ allowed: false, code: 429, message: "not now", reason: "Fault", log: { was: String(error) } }),
  };
}

const allowing = webhookOf(async () => ({ allowed: true, reason: "Fine" }));

describe("a review", () => {
  it("reaches the handler as it was sent, and what is not set is left out", async (t) => {
    const seen: AdmissionRequest[] = [];
    const { post } = await serve(
      t,
      webhookOf(async (one) => (seen.push(one), { allowed: true })),
    );
    await post(reviewText(request));
    await post(reviewText({ uid: "u-2", operation: null, dryRun: null, namespace: "", kind: null }));
    assert.deepEqual(seen[0], request);
    const { object: _object, oldObject: _oldObject, ...bare } = seen[1] ?? assert.fail();
    const nothing = { group: "", version: "" };
    assert.deepEqual(bare, {
      uid: "u-2",
      operation: "",
      dryRun: false,
      kind: { ...nothing, kind: "" },
      resource: { ...nothing, resource: "" },
    });
  });

  for (const apiVersion of ["admission.k8s.io/v1", "admission.k8s.io/v1beta1"])
    it(`of ${apiVersion} is answered in kind`, async (t) => {
      const patch = [{ op: "add", path: "/a", value: "ü" }];
      const answer = { allowed: true, code: 200, message: "well", warnings: ["w".repeat(500)], patch, log: { secret: 1 } };
      const { post } = await serve(
        t,
        webhookOf(async () => answer),
      );
      const { status, text, headers } = await post(reviewText(request, { apiVersion }));
      assert.deepEqual([status, headers["content-type"]], [200, "application/json"]);
      const { response, ...rest } = JSON.parse(text) as { response: { patch: string } };
      assert.deepEqual(rest, { kind: "AdmissionReview", apiVersion });
      assert.deepEqual(JSON.parse(Buffer.from(response.patch, "base64").toString()), patch);
      assert.deepEqual(
        { ...response, patch: "" },
        {
          uid: "u-1",
          allowed: true,
          status: { code: 200, message: "well" },
          warnings: [`${"w".repeat(400)}...`],
          patchType: "JSONPatch",
          patch: "",
        },
      );
    });

  it("that is simply allowed is answered with nothing more", async (t) => {
    const { text } = await (await serve(t, allowing)).post(reviewText(request));
    assert.deepEqual((JSON.parse(text) as { response: object }).response, { uid: "u-1", allowed: true });
  });
});

describe("what is refused", () => {
  const large = Buffer.alloc(3 * 1024 * 1024 + 1, " ");
  const CASES: readonly [string, string | Buffer, object, number, RegExp][] = [
    ["another method", "", { method: "PUT" }, 405, /^POST an AdmissionReview\n$/],
    ["another content type", reviewText(request), { type: "text/plain" }, 400, /^wrong content type\n$/],
    ["a charset", reviewText(request), { type: "application/json; charset=latin1" }, 400, /^wrong content type\n$/],
    ["nothing", "", {}, 400, /^Request could not be decoded: Unexpected end of JSON input\n$/],
    ["half a review", reviewText(request).slice(0, 50), {}, 400, /^Request could not be decoded: .*JSON/],
    ["bytes that are no UTF-8", Buffer.from([0x22, 0xc3, 0x28, 0x22]), {}, 400, /^Request could not be decoded: it is not UTF-8\n$/],
    ["a list", "[]", {}, 400, /^Request could not be decoded: it is no object\n$/],
    ["null", "null", {}, 400, /^Request could not be decoded: it is no object\n$/],
    ["another kind", `{"kind":"Pod","apiVersion":"v1"}`, {}, 400, /^Unsupported group version kind: v1, Kind=Pod\n$/],
    [
      "another version",
      reviewText(request, { apiVersion: "admission.k8s.io/v2" }),
      {},
      400,
      /^Unsupported group version kind: admission.k8s.io\/v2, /,
    ],
    ["no request", reviewText(undefined), {}, 400, /^Request could not be decoded: request: /],
    ["a request of null", reviewText(null), {}, 400, /^Request could not be decoded: request: /],
    ["no UID", reviewText({ ...request, uid: undefined }), {}, 400, /^Request could not be decoded: request\.uid: /],
    ["an empty UID", reviewText({ ...request, uid: "" }), {}, 400, /^Request could not be decoded: request\.uid: /],
    [
      "a dry run that is no boolean",
      reviewText({ ...request, dryRun: "yes" }),
      {},
      400,
      /^Request could not be decoded: request\.dryRun: /,
    ],
    ["a resource that is a string", reviewText({ ...request, resource: "pods" }), {}, 400, /request\.resource: /],
    ["a body that says it is too large", large, { headers: { "content-length": String(large.length) } }, 413, /larger than 3145728 bytes/],
    ["a body that turns out too large", large, { headers: { "transfer-encoding": "chunked" } }, 413, /larger than 3145728 bytes/],
  ];
  for (const [name, body, more, status, message] of CASES)
    it(`${name}: ${status}`, async (t) => {
      const { post, entries, metrics } = await serve(
        t,
        webhookOf(() => assert.fail("the handler was asked")),
      );
      const answer = await post(body, more);
      assert.equal(answer.status, status, answer.text);
      assert.match(answer.text, message);
      assert.equal(answer.headers["connection"], "close");
      assert.deepEqual(
        entries.map(({ msg, level, status: logged }) => [msg, level, logged]),
        [["request refused", "warn", status]],
      );
      assert.match(await metrics.render(), new RegExp(`request_duration_seconds_count\\{.*status_code="${status}",ws="false"\\} 1\n`));
    });

  it("a body of the largest size is taken", async (t) => {
    const text = reviewText(request);
    const { post } = await serve(t, allowing);
    assert.equal((await post(text + " ".repeat(3 * 1024 * 1024 - text.length))).status, 200);
  });
});

describe("a handler that fails", () => {
  const NOT_NOW = { uid: "u-1", allowed: false, status: { code: 429, message: "not now" } };
  const CASES: readonly [string, Webhook["handle"], RegExp][] = [
    ["by an error", () => Promise.reject(new TypeError("x is not a function at /src/secret.ts:1")), /not a function/],
    ["by something that is no error", () => Promise.reject(null), /null/],
    ["by silence until its deadline", () => new Promise(() => {}), /no answer within 45 ms/],
  ];
  for (const [name, handle, was] of CASES)
    it(`${name} has its webhook's own answer, and the log knows why`, async (t) => {
      const { post, entries, metrics } = await serve(t, webhookOf(handle));
      const { status, text } = await post(reviewText(request), { query: "?timeout=50ms" });
      assert.equal(status, 200);
      assert.deepEqual((JSON.parse(text) as { response: object }).response, NOT_NOW);
      assert.partialDeepStrictEqual(entries, [{ level: "error", msg: "pod eviction denied", reason: "Fault", code: 429 }]);
      assert.match(String(entries[0]?.["was"]), was);
      assert.match(await metrics.render(), /webhook_answers_total\{webhook="podEviction",result="fault",reason="Fault"\} 1\n/);
    });
});

test("a webhook that breaks its promises takes down neither the process nor the caller's wait", async (t) => {
  const broken: Webhook = { ...webhookOf(() => Promise.reject(new Error("one"))), onFault: () => assert.fail("two at /src/secret.ts") };
  const { post, entries } = await serve(t, broken);
  const { status, text } = await post(reviewText(request));
  assert.deepEqual([status, text], [500, "internal error\n"]);
  assert.equal(entries[0]?.msg, "the rim itself failed");
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
    await (await serve(t, webhook)).post(reviewText(request), { query: "?timeout=20ms" });
    assert.ok(hasCode(await fired.promise, "Timeout"));
  });

  it("is now, when the caller goes away", async (t) => {
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

test("each answer makes one line and one count", async (t) => {
  const answers: readonly [Answer, string][] = [
    [{ allowed: true, reason: "Fine" }, "debug"],
    [{ allowed: true, reason: "Fine", message: "done" }, "info"],
    [{ allowed: true, reason: "Odd", warnings: ["look"] }, "warn"],
    [{ allowed: false, reason: "Spent", code: 429, message: "no", log: { partition: "0" } }, "info"],
  ];
  const queue = answers.map(([answer]) => answer);
  const { post, entries, metrics } = await serve(
    t,
    webhookOf(async () => queue.shift() ?? assert.fail()),
  );
  for (const _ of answers) await post(reviewText(request));
  assert.deepEqual(
    entries.map(({ level }) => level),
    answers.map(([, level]) => level),
  );
  const common = {
    method: "admission.PodEviction()",
    "object.name": "web-0",
    "object.namespace": "shop",
    "object.resource": "pods",
    "request.uid": "u-1",
    "request.operation": "CREATE",
    "request.subresource": "eviction",
    "request.dry_run": true,
    "request.gvk": "policy/v1/Eviction",
    "request.username": "alice",
  };
  assert.partialDeepStrictEqual(entries[3], {
    msg: "pod eviction denied",
    ...common,
    reason: "Spent",
    code: 429,
    message: "no",
    partition: "0",
  });
  const text = await metrics.render();
  for (const line of [
    'zonewise_webhook_answers_total{webhook="podEviction",result="allowed",reason="Fine"} 2',
    'zonewise_webhook_answers_total{webhook="podEviction",result="denied",reason="Spent"} 1',
    'rollout_operator_inflight_requests{method="POST",route="admission_pod_eviction"} 0',
    'rollout_operator_request_message_bytes_count{method="POST",route="admission_pod_eviction"} 4',
  ])
    assert.ok(text.includes(`${line}\n`), line);
});

test("with an audience, only callers with a token of the cluster for it are let in", async (t) => {
  const { emulator } = await setStage(t);
  const connection = connectionOf(emulator);
  t.after(() => connection.close());
  const audience = "webhooks";
  const { post } = await serve(t, allowing, { authenticate: createTokenCheck(connection, { audience, timeoutMs: 5000 }) });
  const admin = connect(emulator.kubeconfig() as unknown as Kubeconfig);
  t.after(() => admin.close());
  const accounts = "/api/v1/namespaces/default/serviceaccounts";
  await admin.call({ method: "POST", path: accounts, body: { metadata: { name: "caller" } } });
  const token = async (...audiences: string[]): Promise<string> => {
    const body = { spec: { audiences, expirationSeconds: 600 } };
    const answer = await admin.call({ method: "POST", path: `${accounts}/caller/token`, body });
    return (answer.body as { status: { token: string } }).status.token;
  };
  const ours = await token(audience);
  const [head, body] = ours.split(".");
  const CASES: readonly [string, string | undefined, number][] = [
    ["no token", undefined, 401],
    ["one for another audience", `Bearer ${await token("https://kubernetes.default.svc")}`, 401],
    ["one that somebody else signed", `Bearer ${head}.${body}.${"A".repeat(86)}`, 401],
    ["one without a signature", `Bearer ${Buffer.from('{"alg":"none"}').toString("base64url")}.${body}.`, 401],
    ["nonsense", "Bearer a b", 401],
    ["another scheme", `Basic ${ours}`, 401],
    ["ours", `Bearer ${ours}`, 200],
  ];
  for (const [name, authorization, status] of CASES) {
    const answer = await post(reviewText(request), authorization === undefined ? {} : { headers: { authorization } });
    assert.equal(answer.status, status, name);
    if (status === 401) assert.equal(answer.headers["www-authenticate"], "Bearer");
  }
});

test("when the keys cannot be had, nobody is let in", async (t) => {
  const { post, entries } = await serve(t, allowing, { authenticate: () => Promise.reject(new Error("no keys")) });
  assert.equal((await post(reviewText(request))).status, 401);
  assert.equal(entries[0]?.msg, "callers cannot be told apart");
});
