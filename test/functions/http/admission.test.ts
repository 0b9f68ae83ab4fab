/** The rim over real HTTP: requests, answers and refusals. */
import assert from "node:assert/strict";
import { describe, it, test } from "node:test";
import { MAX_BODY } from "../../../functions/http/rim.ts";
import type { AdmissionRequest, Answer } from "../../../functions/http/webhook.ts";
import { reviewText, serve } from "../http.ts";
import { allowing, request, webhookOf } from "../samples.ts";

describe("a review", () => {
  it("reaches the handler as it was sent, without fields that are not set", async (t) => {
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
      const answer = {
        allowed: true,
        code: 200,
        message: "well",
        warnings: ["w".repeat(500)],
        patch,
        log: { secret: 1 },
      };
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

  it("that is allowed without remarks gets no further fields", async (t) => {
    const { text } = await (await serve(t, allowing)).post(reviewText(request));
    assert.deepEqual((JSON.parse(text) as { response: object }).response, { uid: "u-1", allowed: true });
  });
});

describe("a refused request", () => {
  const large = Buffer.alloc(MAX_BODY + 1, " ");
  const CASES: readonly [string, string | Buffer, object, number, RegExp][] = [
    ["another method", "", { method: "PUT" }, 405, /^POST an AdmissionReview\n$/],
    ["another content type", reviewText(request), { type: "text/plain" }, 400, /^wrong content type\n$/],
    ["a charset", reviewText(request), { type: "application/json; charset=latin1" }, 400, /^wrong content type\n$/],
    ["nothing", "", {}, 400, /^Request could not be decoded: Unexpected end of JSON input\n$/],
    ["half a review", reviewText(request).slice(0, 50), {}, 400, /^Request could not be decoded: .*JSON/],
    [
      "bytes that are no UTF-8",
      Buffer.from([0x22, 0xc3, 0x28, 0x22]),
      {},
      400,
      /^Request could not be decoded: it is not UTF-8\n$/,
    ],
    ["a list", "[]", {}, 400, /^Request could not be decoded: it is not an object\n$/],
    ["null", "null", {}, 400, /^Request could not be decoded: it is not an object\n$/],
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
    [
      "a body with a Content-Length above the limit",
      large,
      { headers: { "content-length": String(large.length) } },
      413,
      /larger than 19136512 bytes/,
    ],
    [
      "a body that exceeds the limit",
      large,
      { headers: { "transfer-encoding": "chunked" } },
      413,
      /larger than 19136512 bytes/,
    ],
  ];
  for (const [name, body, more, status, message] of CASES)
    it(`${name}: ${status}`, async (t) => {
      const { post, entries, metrics } = await serve(
        t,
        webhookOf(() => assert.fail("the handler was called")),
      );
      const answer = await post(body, more);
      assert.equal(answer.status, status, answer.text);
      assert.match(answer.text, message);
      assert.equal(answer.headers["connection"], "close");
      assert.deepEqual(
        entries.map(({ msg, level, status: logged }) => [msg, level, logged]),
        [["request refused", "warn", status]],
      );
      assert.match(
        await metrics.render(),
        new RegExp(`request_duration_seconds_count\\{.*status_code="${status}",ws="false"\\} 1\n`),
      );
    });

  it("a body of the maximum size is accepted", async (t) => {
    const text = reviewText(request);
    const { post } = await serve(t, allowing);
    assert.equal((await post(text + " ".repeat(MAX_BODY - text.length))).status, 200);
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
