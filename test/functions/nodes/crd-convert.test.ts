import assert from "node:assert/strict";
import { createServer } from "node:http";
import { describe, it, type TestContext } from "node:test";
import { systemClock } from "../../../infra/clock.ts";
import { createLog } from "../../../infra/log.ts";
import { createMetrics } from "../../../infra/metrics/metrics.ts";
import { MAX_REVIEW, serveConversion } from "../../../functions/nodes/crd-convert.ts";
import { listen } from "../../loopback.ts";

async function serve(t: TestContext) {
  const log = createLog({ level: "error", format: "json", write: () => {}, now: () => new Date(0) });
  const handler = serveConversion({
    clock: systemClock,
    log,
    metrics: createMetrics().webhooks,
    requestTimeoutMs: 60_000,
  });
  const server = createServer((request, response) => void handler(request, response));
  const port = await listen(server, "127.0.0.1");
  t.after(() => server.close());
  const url = `http://127.0.0.1:${port}/crdconvert`;
  return (body: string, method = "POST") => fetch(url, { method, ...(method === "POST" && { body }) });
}

const review = (count: number, size = 0): string =>
  JSON.stringify({
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "ConversionReview",
    request: {
      uid: "r-1",
      desiredAPIVersion: "brupop.bottlerocket.aws/v2",
      objects: Array.from({ length: count }, (_, i) => ({
        apiVersion: "brupop.bottlerocket.aws/v1",
        kind: "BottlerocketShadow",
        metadata: { name: `brs-${i}`, annotations: { note: "x".repeat(size) } },
        spec: { state: "StagedUpdate" },
      })),
    },
  });

describe("POST /crdconvert", () => {
  it("answers a review with 200 and the converted objects, without credentials", async (t) => {
    const post = await serve(t);
    const answer = await post(review(2));
    assert.equal(answer.status, 200);
    const { response } = (await answer.json()) as {
      response: { uid: string; convertedObjects: { apiVersion: string }[] };
    };
    assert.deepEqual(
      [response.uid, response.convertedObjects.map(({ apiVersion }) => apiVersion)],
      ["r-1", Array(2).fill("brupop.bottlerocket.aws/v2")],
    );
  });

  it("converts a list of more than 4 MiB", async (t) => {
    const post = await serve(t);
    const body = review(2000, 2000);
    assert.ok(body.length > 4 * 1024 * 1024);
    assert.equal((await post(body)).status, 200);
  });

  for (const [title, body, method, status] of [
    ["another method", "", "GET", 405],
    ["what is no JSON", "{", "POST", 400],
    ["what is no review", "{}", "POST", 400],
    ["a body without bound", `"${"x".repeat(MAX_REVIEW)}"`, "POST", 413],
  ] as const)
    it(`refuses ${title} with ${status}`, async (t) =>
      assert.equal((await (await serve(t))(body, method)).status, status));
});
