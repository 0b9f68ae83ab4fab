import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { it } from "node:test";
import { systemClock } from "../../../infra/clock.ts";
import { compose } from "../../../reconciler/run/compose.ts";
import { listen } from "../../loopback.ts";

it("a run does not start unless its Lease is shorter than its time budget", async () => {
  const env = { KUBERNETES_NAMESPACE: "own", RECONCILE_TIME_BUDGET: "10s" };
  await assert.rejects(compose(env, systemClock), {
    code: "BadConfiguration",
    message: /LEASE_DURATION is 30s by default/,
  });
});

it("a run pushes its metrics under the job and instance that are the installation's, for dashboards of the original", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "compose-"));
  const server = createServer((request, response) => void request.resume().on("end", () => response.end()));
  t.after(() => {
    server.close();
    rmSync(folder, { recursive: true });
  });
  const url = `http://127.0.0.1:${await listen(server)}`;
  const cluster = { name: "c", cluster: { server: url } };
  const context = { name: "c", context: { cluster: "c", user: "u" } };
  const kubeconfig = {
    "current-context": "c",
    clusters: [cluster],
    contexts: [context],
    users: [{ name: "u", user: {} }],
  };
  writeFileSync(join(folder, "config"), JSON.stringify(kubeconfig));
  const { push } = await compose(
    { KUBERNETES_NAMESPACE: "own", PUSHGATEWAY_URL: url, KUBECONFIG: join(folder, "config"), LOG_LEVEL: "error" },
    systemClock,
  );
  const pushed = once(server, "request") as Promise<[IncomingMessage]>;
  await push();
  const grouping = ["own/rollout-operator", "own/zonewise-reconciler"].map((text) =>
    Buffer.from(text).toString("base64url"),
  );
  assert.equal((await pushed)[0].url, `/metrics/job@base64/${grouping[0]}/instance@base64/${grouping[1]}`);
});
