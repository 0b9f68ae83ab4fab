import assert from "node:assert/strict";
import { request as open, type ClientRequest } from "node:http";
import { test, type TestContext } from "node:test";
import { MAX_BODY } from "../../functions/http/body.ts";
import { reviewText, serve } from "./http.ts";
import { allowing, request } from "./samples.ts";

/** Sends a large body except its last byte; resolves once it is sent. */
function sendWithoutEnd(t: TestContext, port: number): Promise<ClientRequest> {
  const headers = { "content-type": "application/json", "content-length": MAX_BODY };
  const sender = open({ port, host: "127.0.0.1", method: "POST", headers });
  sender.on("error", () => {});
  t.after(() => sender.destroy());
  return new Promise((resolve) => sender.write(Buffer.alloc(MAX_BODY - 1, " "), () => resolve(sender)));
}

test("unfinished requests do not fill the memory: others get a 429 until those have ended", async (t) => {
  const { port, post } = await serve(t, allowing);
  const status = async (): Promise<number> => (await post(reviewText(request))).status;
  const becomes = async (wanted: number): Promise<void> => {
    for (let tries = 0; tries < 1000; tries++) if ((await status()) === wanted) return;
    assert.fail(`never ${wanted}`);
  };
  assert.equal(await status(), 200);
  const senders = await Promise.all(Array.from({ length: 17 }, () => sendWithoutEnd(t, port)));
  await becomes(429);
  for (const sender of senders) sender.destroy();
  await becomes(200);
});
