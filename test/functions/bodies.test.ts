import assert from "node:assert/strict";
import { request as open } from "node:http";
import { test, type TestContext } from "node:test";
import { MAX_BODY, MAX_VALUES } from "../../functions/http/rim.ts";
import { reviewText, serve } from "./http.ts";
import { allowing, request } from "./samples.ts";

/** Sends all but the last byte of the largest body; resolves with the answer's status, if one comes before the end. */
function sendWithoutEnd(t: TestContext, port: number): Promise<number | undefined> {
  const headers = { "content-type": "application/json", "content-length": MAX_BODY };
  const sender = open({ port, host: "127.0.0.1", method: "POST", headers });
  t.after(() => sender.destroy());
  sender.write(Buffer.alloc(MAX_BODY - 1, " "));
  return new Promise((resolve) => {
    sender.on("response", ({ statusCode }) => resolve(statusCode));
    sender.on("error", () => {});
  });
}

test("unfinished requests do not fill the memory: the one that comes to more than 48 MiB gets a 429, and others go on", async (t) => {
  const { port, post } = await serve(t, allowing);
  const refused = Promise.race(Array.from({ length: 3 }, () => sendWithoutEnd(t, port)));
  assert.equal(await refused, 429);
  assert.equal((await post(reviewText(request))).status, 200);
});

test("a review of the largest StatefulSet that etcd stores is accepted, before and after, however JSON writes it", async (t) => {
  const { post } = await serve(t, allowing);
  const value = "<".repeat(1.5 * 1024 * 1024);
  const object = {
    apiVersion: "apps/v1",
    kind: "StatefulSet",
    spec: { template: { spec: { containers: [{ value }] } } },
  };
  const text = reviewText({ ...request, object, oldObject: object }).replaceAll("<", String.raw`\u003c`);
  assert.ok(text.length > 18 * 1024 * 1024);
  assert.equal((await post(text)).status, 200);
});

test("a body with more values and keys than stored objects have is refused before it is decoded: they would fill the memory", async (t) => {
  const { post } = await serve(t, allowing);
  const padded = (values: string): string =>
    reviewText({ ...request, object: { values: 0 } }).replace('"values":0', `"values":[${values}]`);
  const few =
    padded("")
      .replaceAll(/"[^"]*"/g, "")
      .match(/[,:[{]/g)?.length ?? 0;
  const empty = "{},".repeat((MAX_VALUES - few) / 2);
  assert.equal((await post(padded(`${empty}0`))).status, 200);
  assert.equal((await post(padded(`${empty}0,0,0`))).status, 413);
  const keys = Array.from({ length: MAX_VALUES / 2 + 1 }, (_, i) => `"${i}":0`).join();
  assert.equal((await post(padded(`{${keys}}`))).status, 413, "keys count, too");
  assert.equal((await post(padded(`"${String.raw`\"[{,:`.repeat(MAX_VALUES)}"`))).status, 200, "text has no values");
});
