/**
 * Every process of the built image does its work once on the embedded cluster: a broken bundle fails. The Dockerfile
 * runs this on what it has built, IMAGE_ROOT, and keeps what V8 has compiled meanwhile, COMPILE_CACHE.
 */
import assert from "node:assert/strict";
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { Agent, request as open } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it, type TestContext } from "node:test";
import { connectCluster } from "../../infra/kubernetes/connect-cluster.ts";
import { loadConnection } from "../../infra/kubernetes/connection.ts";
import type { Secret } from "../../infra/kubernetes/resources.ts";
import { define } from "../demo/definitions.ts";
import { applySample } from "../demo/sample.ts";
import { type Emulator, startEmulator } from "../emulator/index.ts";
import { textsOf } from "../infra/certs/stage.ts";
import { ROOT } from "../infra/manifests.ts";
import { reviewText } from "../functions/http.ts";
import { run, type Running } from "../functions/process.ts";
import { request } from "../functions/samples.ts";
import { freePort } from "../loopback.ts";
import { type ImageProcess, readProcesses } from "./processes.ts";

const SECRET = "rollout-operator-self-signed-certificate";
const EVENT = { "ce-id": "1", "ce-source": "test", "ce-type": "test", "ce-specversion": "1.0" };
const JSON_TYPE = { "content-type": "application/json" };

const scratch = mkdtempSync(join(tmpdir(), "image-"));
const root = process.env["IMAGE_ROOT"] ?? scratch;
const kubeconfig = join(scratch, "kubeconfig");
let emulator: Emulator;

before(async () => {
  if (root === scratch) {
    copyFileSync(join(ROOT, "package.json"), join(scratch, "package.json"));
    const { buildAll } = await import("../../infra/build.ts");
    await buildAll(ROOT, join(scratch, "dist"));
  }
  emulator = await startEmulator();
  await emulator.writeKubeconfig(kubeconfig);
  const connection = await loadConnection({ kubeconfig });
  await define(emulator.store, ["zoneawarepoddisruptionbudgets"]);
  await applySample(connectCluster(connection, { timeoutMs: 60_000 }), "default");
  connection.close();
});
after(async () => {
  await emulator.stop();
  rmSync(scratch, { recursive: true });
});

function start(t: TestContext, { args, env }: ImageProcess, more: Readonly<Record<string, string>> = {}): Running {
  const cache = process.env["COMPILE_CACHE"];
  const own = {
    KUBECONFIG: kubeconfig,
    KUBERNETES_NAMESPACE: "default",
    NODE_ENV: "production",
    ...(cache && { NODE_COMPILE_CACHE: cache }),
  };
  return run(t, process.execPath, args, { ...own, ...env, ...more }, root);
}

/** SIGTERM ends the process, and none of its log lines reports an error. */
async function end({ child, exited, lines }: Running): Promise<void> {
  child.kill("SIGTERM");
  assert.equal(await exited, 0, lines.join("\n"));
  assert.doesNotMatch(lines.join("\n"), /"level":"error"/);
}

const secretTexts = (): Readonly<Record<string, string>> =>
  textsOf(emulator.store.get("secrets", "default", SECRET) as Pick<Secret, "data"> | undefined);

/** Starts it with the certificate that the job has made, and POSTs to each path; each answer must have `expected`. */
async function playTlsServer(
  t: TestContext,
  process: ImageProcess,
  posts: readonly (readonly [path: string, body: string, expected: RegExp])[],
): Promise<void> {
  const texts = secretTexts();
  const files = { SERVER_TLS_CERT_FILE: join(scratch, "tls.crt"), SERVER_TLS_KEY_FILE: join(scratch, "tls.key") };
  writeFileSync(files.SERVER_TLS_CERT_FILE, texts["tls.crt"] ?? "");
  writeFileSync(files.SERVER_TLS_KEY_FILE, texts["tls.key"] ?? "");
  const running = start(t, process, { ...files, SERVER_ADDRESS: "127.0.0.1", SERVER_TLS_PORT: "0", SERVER_PORT: "0" });
  const { port } = JSON.parse(await running.says(/"what":"webhooks"/)) as { port: number };
  const servername = "rollout-operator.default.svc";
  const agent = new Agent({ ca: texts["ca"], servername });
  for (const [path, body, expected] of posts) {
    const text = await new Promise<string>((resolve, reject) => {
      const options = { agent, host: "127.0.0.1", port, path, method: "POST", headers: JSON_TYPE };
      open(options, (response) => {
        let body = "";
        response.setEncoding("utf8").on("data", (chunk: string) => (body += chunk));
        response.on("end", () => resolve(body));
      })
        .on("error", reject)
        .end(body);
    });
    assert.match(text, expected, path);
  }
  agent.destroy();
  await end(running);
}

const WEBHOOKS = ["no-downscale", "prepare-downscale", "mutate-pod-eviction", "zpdb-validation", "raise-partition"];
const playServer = (t: TestContext, process: ImageProcess): Promise<void> =>
  playTlsServer(
    t,
    process,
    WEBHOOKS.map((name) => [`/admission/${name}`, reviewText(request), /"uid":"u-1"/] as const),
  );

const CONVERSION = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "ConversionReview",
  request: { uid: "u-1", desiredAPIVersion: "brupop.bottlerocket.aws/v2", objects: [] },
};
const playNodeApi = (t: TestContext, process: ImageProcess): Promise<void> =>
  playTlsServer(t, process, [["/crdconvert", JSON.stringify(CONVERSION), /"Success"/]]);

/** Only a pod has the credentials of one: it comes as far as that. */
async function playAgent(t: TestContext, process: ImageProcess): Promise<void> {
  const { exited, lines } = start(t, process, { MY_NODE_NAME: "node-1", KUBERNETES_SERVICE_HOST: "127.0.0.1" });
  assert.equal(await exited, 1);
  assert.match(lines.join("\n"), /\/var\/run\/secrets\/kubernetes.io\/serviceaccount\/(?:token|ca\.crt)/);
}

async function playNodeJob(t: TestContext, process: ImageProcess): Promise<void> {
  await playJob(t, process);
  const { data } = (emulator.store.get("configmaps", "default", "zonewise-node-api-ca") ?? {}) as {
    data?: Record<string, string>;
  };
  assert.equal(data?.["ca.crt"], secretTexts()["ca.crt"]);
}

async function playTarget(t: TestContext, process: ImageProcess): Promise<void> {
  const port = String(await freePort());
  const isEvent = process.env["FUNCTION_SIGNATURE_TYPE"] === "cloudevent";
  const running = start(t, process, { PORT: port });
  const post = (): Promise<Response> =>
    fetch(`http://127.0.0.1:${port}/`, {
      method: "POST",
      headers: { ...JSON_TYPE, ...(isEvent && EVENT) },
      body: reviewText(request),
    });
  // In production, the framework does not log that it listens.
  let answer: Response | undefined;
  while (!answer && running.child.exitCode === null) answer = await post().catch(() => undefined);
  assert.ok(answer?.ok, running.lines.join("\n"));
  await end(running);
}

async function playReconciler(t: TestContext, process: ImageProcess): Promise<void> {
  const running = start(t, process);
  await running.says(/the certificate of the webhooks was made/);
  await running.says(/"msg":"tick"/);
  await end(running);
  const ending = running.lines.filter((line) => /asked to stop.*"SIGTERM"|the run ended.*"exitCode":0/.test(line));
  assert.equal(ending.length, 2, running.lines.join("\n"));
}

async function playJob(t: TestContext, process: ImageProcess): Promise<void> {
  emulator.store.remove("secrets", "default", SECRET);
  const { exited, lines } = start(t, process);
  assert.equal(await exited, 0, lines.join("\n"));
  assert.ok(secretTexts()["tls.crt"]);
}

async function playStatusPage(t: TestContext, process: ImageProcess): Promise<void> {
  const running = start(t, process, { SERVER_ADDRESS: "127.0.0.1", SERVER_PORT: "0" });
  const { port } = JSON.parse(await running.says(/"what":"status page"/)) as { port: number };
  assert.match(await (await fetch(`http://127.0.0.1:${port}/`)).text(), /<h1>Zonewise<\/h1>.*Last tick/s);
  await end(running);
}

const PARTS: readonly [string, (t: TestContext, process: ImageProcess) => Promise<void>][] = [
  ["dist/infra/certs/main.js", playJob],
  ["dist/reconciler/main.js", playReconciler],
  ["dist/functions/serve.js", playServer],
  ["dist/infra/certs/node-api.js", playNodeJob],
  ["dist/functions/nodes/main.js", playNodeApi],
  ["dist/reconciler/agent/main.js", playAgent],
  ["dist/functions/framework.js", playTarget],
  ["dist/functions/status/main.js", playStatusPage],
];

describe("in the image", () => {
  for (const process of readProcesses())
    it(`${process.name} does its work and ends without an error`, async (t) => {
      const [, play] =
        PARTS.find(([entry]) => process.args.includes(entry)) ?? assert.fail(`nothing plays ${process.args.join(" ")}`);
      await play(t, process);
    });
});
