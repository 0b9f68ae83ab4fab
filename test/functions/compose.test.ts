import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test } from "node:test";
import { composeFunctions } from "../../functions/compose.ts";
import { systemClock } from "../../infra/clock.ts";
import { listen, toLoopback } from "../loopback.ts";
import { callWebhook, createZone, reviewOf, setStage, writeKubeconfig } from "./stage.ts";

test("unresponsive pods of one group do not delay the calls to another group's pods", async (t) => {
  const stage = await setStage(t);
  const allAsked = Promise.withResolvers<void>();
  let silent = 0;
  const pods = createServer((request, response) => {
    if (!request.headers.host?.startsWith("silent")) response.end();
    else if (++silent === 32) allAsked.resolve();
  });
  const port = await listen(pods);
  t.after(() => (pods.closeAllConnections(), pods.close()));
  const annotations = { "grafana.com/prepare-downscale-http-port": String(port) };
  const env = {
    KUBECONFIG: await writeKubeconfig(t, stage),
    KUBERNETES_NAMESPACE: "default",
    PODS_CLIENT_TIMEOUT: "1m",
    LOG_LEVEL: "error",
  };
  const { webhooks, rim } = await composeFunctions(env, systemClock, toLoopback);
  const webhook = webhooks.find(({ name }) => name === "prepareDownscale");
  assert.ok(webhook);

  const hanging = callWebhook(
    webhook,
    reviewOf(createZone(stage, "silent-zone-a", { group: "silent", replicas: 40, annotations }), 0),
    {
      timeoutMs: 60_000,
    },
  );
  await allAsked.promise;
  const answer = await callWebhook(
    webhook,
    reviewOf(createZone(stage, "store-zone-a", { group: "store", annotations }), 1),
    {
      timeoutMs: 30_000,
    },
  );

  assert.equal(answer.reason, "Prepared");
  pods.closeAllConnections();
  pods.removeAllListeners("request").on("request", (_request, response) => response.end());
  assert.equal((await hanging).reason, "PodsNotPrepared");
  await rim.tasks.settled();
});
