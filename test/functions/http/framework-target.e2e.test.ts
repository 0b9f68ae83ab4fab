/** The webhooks as targets of the real functions-framework process, from the TypeScript source. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { MAX_BODY } from "../../../functions/http/rim.ts";
import { type Asked, exchange, reviewText } from "../http.ts";
import { createZone, reviewOf, scaleReviewOf, setStage, type Stage, writeKubeconfig } from "../stage.ts";
import { SERVING, startTarget, type Target } from "../target.ts";

interface PostedTarget extends Target {
  post(body: string | Buffer, headers?: Record<string, string>): Promise<Asked>;
}

async function start(
  t: TestContext,
  stage: Stage,
  target: string,
  env: Record<string, string> = {},
): Promise<PostedTarget> {
  const running = await startTarget(t, target, { KUBECONFIG: await writeKubeconfig(t, stage), ...env });
  return {
    ...running,
    post: (body, headers = {}) => {
      const options = {
        port: running.port,
        method: "POST",
        path: "/?timeout=30s",
        headers: { "content-type": "application/json", ...headers },
      };
      return exchange(options, Buffer.from(body));
    },
  };
}

test("a target answers like the server of all webhooks, without traces of the framework", async (t) => {
  const stage = await setStage(t);
  const { says, post, url, child, exited } = await start(t, stage, "noDownscale");
  await says(SERVING);
  const zone = createZone(stage, "web", { labels: { "grafana.com/no-downscale": "true" } });
  const denied = await post(reviewText(reviewOf(zone, 1)));
  assert.equal(denied.status, 200);
  assert.match(
    denied.text,
    /"allowed":false,"status":\{"message":"downscale of statefulsets\/web in default from 3 to 1 replicas is not allowed/,
  );

  const REFUSED: readonly [string, string | Buffer, Record<string, string>, number, RegExp][] = [
    ["malformed JSON", '{"kind":', {}, 400, /^Request could not be decoded: .*JSON.*\n$/],
    ["another content type", reviewText({}), { "content-type": "text/plain" }, 400, /^wrong content type\n$/],
    ["a form", "a=b", { "content-type": "application/x-www-form-urlencoded" }, 400, /^wrong content type\n$/],
    [
      "an unknown charset",
      "{}",
      { "content-type": "application/json; charset=nonsense" },
      400,
      /^wrong content type\n$/,
    ],
    ["an unknown encoding", "{}", { "content-encoding": "nonsense" }, 400, /^Unsupported group version kind/],
    [
      "a body that is too large",
      Buffer.alloc(MAX_BODY + 1, " "),
      {},
      413,
      /^the body is larger than 19136512 bytes\n$/,
    ],
  ];
  for (const [name, body, headers, status, text] of REFUSED) {
    const answer = await post(body, headers);
    assert.equal(answer.status, status, name);
    assert.match(answer.text, text, name);
  }
  assert.equal((await fetch(`${url}/ready`)).status, 200);
  assert.match(
    await (await fetch(`${url}/metrics`)).text(),
    /webhook_answers_total\{webhook="noDownscale",result="denied",reason="NoDownscaleLabel"\} 1/,
  );
  child.kill("SIGTERM");
  assert.equal(await exited, 0);
});

test("a request in flight finishes after SIGTERM", async (t) => {
  const stage = await setStage(t);
  const { says, post, child, exited } = await start(t, stage, "prepareDownscale");
  await says(SERVING);
  const zone = createZone(stage, "web", { labels: { "grafana.com/prepare-downscale": "false" } });
  stage.emulator.faults.inject({ resource: "statefulsets.apps", verb: "get", effect: { kind: "latency", ms: 300 } });
  const answer = post(reviewText(scaleReviewOf(zone, 1)));
  while (stage.emulator.faults.struck() === 0) await new Promise(setImmediate);
  child.kill("SIGTERM");
  const { status, text } = await answer;
  assert.deepEqual(
    [status, (JSON.parse(text) as { response: object }).response],
    [200, { uid: "uid-web-1", allowed: true }],
  );
  assert.equal(await exited, 0);
});

test("a wrong configuration ends the process with its name", async (t) => {
  const stage = await setStage(t);
  const { says, exited } = await start(t, stage, "zpdbValidation", { SERVER_TLS_REQUEST_TIMEOUT: "soon" });
  await says(/SERVER_TLS_REQUEST_TIMEOUT is \\"soon\\"/);
  assert.equal(await exited, 2);
});
