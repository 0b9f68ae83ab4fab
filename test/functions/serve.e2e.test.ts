/** The server of all webhooks as its own process. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { Agent, request as open } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { connect, type TLSSocket } from "node:tls";
import { type Certificates } from "../../infra/certs/act/generate.ts";
import { certify } from "../certify.ts";
import { entryFile } from "../entries.ts";
import { either } from "../runs.ts";
import { reviewText } from "./http.ts";
import { type Running, run } from "./process.ts";
import { createZone, reviewOf, scaleReviewOf, setStage, type Stage, writeKubeconfig } from "./stage.ts";

const entry = entryFile("functions/serve.ts");
const NAME = "zonewise.default.svc";

const generate = (): Promise<Certificates> => certify(NAME);

interface Server extends Running {
  readonly folder: string;
  /** Writes a certificate atomically, like the kubelet. */
  install(certPem: string, keyPem: string): Promise<void>;
  post(path: string, body: string, caPem: string): Promise<{ status: number; text: string; serial: string }>;
  health(path: string): Promise<Response>;
  /** Of the webhooks. */
  port(): Promise<number>;
}

async function start(t: TestContext, stage: Stage, more: Readonly<Record<string, string>> = {}): Promise<Server> {
  const folder = await mkdtemp(join(tmpdir(), "serve-"));
  t.after(() => rm(folder, { recursive: true }));
  const env = {
    SERVER_TLS_CERT_FILE: join(folder, "tls.crt"),
    SERVER_TLS_KEY_FILE: join(folder, "tls.key"),
    SERVER_TLS_PORT: "0",
    SERVER_PORT: "0",
  };
  const kubeconfig = await writeKubeconfig(t, stage);
  const running = run(t, process.execPath, [entry], {
    KUBERNETES_NAMESPACE: "default",
    KUBECONFIG: kubeconfig,
    SERVER_ADDRESS: "127.0.0.1",
    ...env,
    ...more,
  });
  const portOf = async (what: string): Promise<number> =>
    (JSON.parse(await running.says(new RegExp(`"listening","what":"${what}"`))) as { port: number }).port;
  return {
    ...running,
    folder,
    async install(certPem, keyPem) {
      await writeFile(join(folder, "next.crt"), certPem);
      await writeFile(join(folder, "next.key"), keyPem);
      await rename(join(folder, "next.crt"), join(folder, "tls.crt"));
      await rename(join(folder, "next.key"), join(folder, "tls.key"));
    },
    port: () => portOf("webhooks"),
    health: async (path) => await fetch(`http://127.0.0.1:${await portOf("ready and metrics")}${path}`),
    async post(path, body, ca) {
      const port = await portOf("webhooks");
      const agent = new Agent({ maxCachedSessions: 0 });
      return await new Promise((resolve, reject) => {
        const options = {
          agent,
          port,
          host: "127.0.0.1",
          servername: NAME,
          ca,
          path,
          method: "POST",
          headers: { "content-type": "application/json" },
        };
        open(options, (response) => {
          const serial = (response.socket as TLSSocket).getPeerCertificate().serialNumber;
          let text = "";
          response.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
          response.on("end", () => resolve({ status: response.statusCode ?? 0, text, serial }));
        })
          .on("error", reject)
          .end(body);
      });
    },
  };
}

// Node.js looks every 30 s for connections that are over their time.
for (const idleMs of either([33_000], []))
  test("keeps a connection that an API server has opened beside those that it needed", async (t) => {
    const stage = await setStage(t);
    const server = await start(t, stage, { SERVER_TLS_REQUEST_TIMEOUT: "1s" });
    const { certPem, keyPem } = await generate();
    await server.install(certPem, keyPem);
    const socket = connect({ port: await server.port(), host: "127.0.0.1", rejectUnauthorized: false });
    t.after(() => socket.destroy());
    let answer = "";
    socket.setEncoding("utf8").on("data", (text: string) => (answer += text));
    await sleep(idleMs);
    assert.deepEqual([answer, socket.closed], ["", false]);
    socket.end("POST /other HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n");
    await once(socket, "close");
    assert.match(answer, /^HTTP\/1\.1 404 /);
  });

test("waits for its certificate, serves every path, follows a new certificate, and ends on SIGTERM", async (t) => {
  const stage = await setStage(t);
  const server = await start(t, stage);
  const [first, second] = await Promise.all([generate(), generate()]);

  await server.says(/certificate cannot be used.*ENOENT/);
  assert.equal((await server.health("/ready")).status, 503);
  await server.install(first.certPem, first.keyPem);

  const zone = createZone(stage, "web", { labels: { "grafana.com/no-downscale": "true" } });
  const review = reviewText(reviewOf(zone, 1));
  const paths = [
    "/admission/no-downscale",
    "/admission/prepare-downscale",
    "/admission/zpdb-validation",
    "/admission/no-downscale/",
  ];
  const answers = await Promise.all(paths.map((path) => server.post(`${path}?timeout=10s`, review, first.caPem)));
  assert.deepEqual(
    answers.map(({ status, text }) => [
      status,
      (JSON.parse(text) as { response: { allowed: boolean } }).response.allowed,
    ]),
    [
      [200, false],
      [200, false],
      [200, false],
      [200, false],
    ],
  );
  assert.equal((await server.post("/admission/other", review, first.caPem)).status, 404);
  assert.equal((await server.post("//", review, first.caPem)).status, 404);
  assert.equal((await server.health("/ready")).status, 200);
  assert.equal((await server.health("/other")).status, 404);
  assert.match(
    await (await server.health("/metrics")).text(),
    /request_duration_seconds_count\{method="POST",route="admission_no_downscale",status_code="200",ws="false"\} 2/,
  );

  // Half of a change: the new certificate with the old key.
  await server.install(second.certPem, first.keyPem);
  await server.says(/the key is not the certificate's/);
  assert.equal((await server.post(paths[0] ?? "", review, first.caPem)).serial, answers[0]?.serial);
  const loaded = server.lines.filter((line) => line.includes("certificate loaded")).length;
  await server.install(second.certPem, second.keyPem);
  await untilTrue(() => server.lines.filter((line) => line.includes("certificate loaded")).length > loaded, server);
  const renewed = await server.post(paths[0] ?? "", review, second.caPem);
  assert.equal(renewed.status, 200);
  assert.notEqual(renewed.serial, answers[0]?.serial);

  stage.emulator.faults.inject({ resource: "statefulsets.apps", verb: "get", effect: { kind: "latency", ms: 1000 } });
  const underWay = server.post(paths[0] ?? "", reviewText(scaleReviewOf(zone, 1)), second.caPem);
  while (stage.emulator.faults.struck() === 0) await new Promise(setImmediate);
  server.child.kill("SIGTERM");
  await server.says(/asked to stop.*"signal":"SIGTERM"/);
  await server.says(/"draining"/);
  assert.equal(
    (await server.health("/ready")).status,
    200,
    "a probe that fails would be a Warning event of a good stop",
  );
  assert.match((await underWay).text, /"allowed":false/);
  await server.says(/"drained"/);
  assert.equal(await server.exited, 0);
});

/** Checks again at every log line. */
async function untilTrue(holds: () => boolean, { child }: Running): Promise<void> {
  while (!holds()) await new Promise((resolve) => child.stdout?.once("data", resolve));
}

test("starts with a time budget that concerns only the reconciler", async (t) => {
  const server = await start(t, await setStage(t), { RECONCILE_TIME_BUDGET: "10s", WEBHOOK_PORT: "9443" });
  await server.says(/"listening"/);
});

test("names the missing variables", async (t) => {
  const stage = await setStage(t);
  const server = run(t, process.execPath, [entry], {
    KUBERNETES_NAMESPACE: "default",
    KUBECONFIG: await writeKubeconfig(t, stage),
  });
  await server.says(/SERVER_TLS_CERT_FILE and SERVER_TLS_KEY_FILE have to be set/);
  assert.equal(await server.exited, 2);
});
