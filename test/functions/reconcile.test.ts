/** The tick as a function, in the real functions-framework process, against the embedded cluster. */
import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { startEmulator, type Emulator } from "../emulator/index.ts";

const root = join(import.meta.dirname, "../..");

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof address === "object" && address ? address.port : 0;
}

/** Serves a target and resolves with its URL once the framework says that it listens. */
async function serve(target: string, type: string, env: Record<string, string>): Promise<{ url: string; process: ChildProcess }> {
  const port = await freePort();
  const child = spawn(
    join(root, "node_modules/.bin/functions-framework"),
    [`--target=${target}`, `--signature-type=${type}`, `--port=${port}`],
    {
      cwd: root,
      env: { ...process.env, ...env },
      stdio: ["ignore", "pipe", "inherit"],
    },
  );
  await new Promise<void>((resolve, reject) => {
    child.once("exit", (code) => reject(new Error(`functions-framework ended with ${code}`)));
    child.stdout.on("data", (chunk: Buffer) => chunk.toString().includes("Serving function") && resolve());
  });
  return { url: `http://127.0.0.1:${port}/`, process: child };
}

describe("reconcile as a function", () => {
  let emulator: Emulator;
  let folder = "";
  const children: ChildProcess[] = [];
  before(async () => {
    emulator = await startEmulator();
    folder = await mkdtemp(join(tmpdir(), "function-"));
    await emulator.writeKubeconfig(join(folder, "kubeconfig"));
    const metadata = { name: "zone-a", namespace: "default", labels: { "rollout-group": "g" } };
    const template = { metadata: { labels: { name: "zone-a" } }, spec: { containers: [{ name: "c", image: "x" }] } };
    const spec = {
      serviceName: "g",
      replicas: 1,
      updateStrategy: { type: "RollingUpdate" },
      selector: { matchLabels: { name: "zone-a" } },
      template,
    };
    emulator.store.create("statefulsets.apps", { apiVersion: "apps/v1", kind: "StatefulSet", metadata, spec });
  });
  after(async () => {
    for (const child of children) child.kill();
    await emulator.stop();
    await rm(folder, { recursive: true });
  });

  const start = async (target: string, type: string, env: Record<string, string> = {}): Promise<string> => {
    const { url, process: child } = await serve(target, type, {
      KUBERNETES_NAMESPACE: "default",
      KUBECONFIG: join(folder, "kubeconfig"),
      ...env,
    });
    children.push(child);
    return url;
  };

  it("answers a POST with the outcome of each group, however many ask at once", async () => {
    const url = await start("reconcile", "http");
    const ask = async (): Promise<unknown> => await (await fetch(url, { method: "POST" })).json();
    const answers = await Promise.all([ask(), ask(), ask(), ask()]);
    const group = { namespace: "default", group: "g", state: "held", reason: "UpdateStrategyNotOnDelete" };
    for (const answer of answers) assert.partialDeepStrictEqual(answer, { failed: true, groups: [group] });
    const refused = await fetch(url);
    assert.deepEqual([refused.status, refused.headers.get("allow")], [405, "POST"]);
  });

  it("takes a CloudEvent as a hint", async () => {
    const url = await start("reconcileEvent", "cloudevent");
    const headers = {
      "ce-id": "1",
      "ce-source": "/test",
      "ce-type": "dev.knative.sources.ping",
      "ce-specversion": "1.0",
      "content-type": "application/json",
    };
    const answer = await fetch(url, { method: "POST", headers, body: "{}" });
    assert.equal(answer.status, 204);
  });

  it("names the variable that is wrong, and keeps its stack to itself", async () => {
    const url = await start("reconcile", "http", { RECONCILE_INTERVAL: "soon" });
    const answer = await fetch(url, { method: "POST" });
    const { error } = (await answer.json()) as { error: string };
    assert.equal(answer.status, 500);
    assert.match(error, /RECONCILE_INTERVAL is "soon"/);
  });
});
