/**
 * Real kubectl (from KUBECTL, else from PATH) on the embedded cluster: the commands that the README and users
 * rely on.
 */
import assert from "node:assert/strict";
import { execFile, spawn, spawnSync } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { startEmulator } from "../../emulator/index.ts";
import type { Emulator } from "../../emulator/index.ts";
import type { KubeObject } from "../../emulator/objects.ts";
import { FILES, STEPS } from "./kubectl-steps.ts";

const KUBECTL = process.env["KUBECTL"] || "kubectl";
const isMissing = spawnSync(KUBECTL, ["version", "--client"]).status !== 0;
const skip = isMissing && !process.env["KUBECTL"] ? "there is no kubectl in PATH, and KUBECTL names none" : false;

let emulator: Emulator;
let folder: string;

before(async () => {
  if (skip) return;
  emulator = await startEmulator();
  folder = await mkdtemp(join(tmpdir(), "kubectl-"));
  await emulator.writeKubeconfig(join(folder, "kubeconfig"));
  for (const [name, text] of Object.entries(FILES)) await writeFile(join(folder, name), text);
  emulator.store.subscribe(({ type, resource, object }) => {
    if (type === "ADDED" && resource === "statefulsets.apps") setImmediate(createEvent, object);
  });
});

after(async () => {
  if (skip) return;
  await emulator.stop();
  await rm(folder, { recursive: true });
});

/** Creates an Event for the object, as Zonewise does. */
function createEvent({ apiVersion, kind, metadata: { name, namespace = "", uid } }: KubeObject): void {
  const time = new Date().toISOString();
  emulator.store.create("events", {
    apiVersion: "v1",
    kind: "Event",
    metadata: { name: `${name}.1`, namespace },
    involvedObject: { apiVersion, kind, name, namespace, uid },
    reason: "Noted",
    message: "All is well",
    source: { component: "tester" },
    firstTimestamp: time,
    lastTimestamp: time,
    count: 1,
    type: "Normal",
  });
}

/** HOME is the test's folder: kubectl caches discovery there. */
const options = (): { cwd: string; env: NodeJS.ProcessEnv } => ({
  cwd: folder,
  env: { ...process.env, HOME: folder, KUBECONFIG: join(folder, "kubeconfig") },
});

function kubectl(type: string): Promise<{ code: number; output: string }> {
  return new Promise((resolve) => {
    execFile(KUBECTL, ["-n", "demo", ...type.split(" ")], options(), (error, stdout, stderr) => {
      resolve({ code: error ? 1 : 0, output: `${stdout}${stderr}` });
    });
  });
}

test("kubectl works with the embedded cluster", { skip, timeout: 600_000 }, async (t) => {
  for (const { type, shows, fails } of STEPS)
    await t.test(`kubectl ${type.slice(0, 100)}`, async () => {
      const { code, output } = await kubectl(type);
      assert.equal(code, fails ? 1 : 0, output);
      assert.match(output, fails ?? shows ?? /./);
    });
});

test("kubectl get -w shows a pod from its creation to its deletion", { skip, timeout: 300_000 }, async () => {
  await kubectl("create namespace watched");
  await kubectl("-n watched run first --image=app:1");
  const watch = spawn(KUBECTL, ["-n", "watched", "get", "pods", "-w"], options());
  let output = "";
  const untilOutput = (pattern: RegExp): Promise<void> =>
    new Promise((resolve) => {
      const check = (): void => void (pattern.test(output) && resolve());
      watch.stdout.on("data", check);
      check();
    });
  watch.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
  await untilOutput(/^NAME +READY +STATUS +RESTARTS +AGE\nfirst /);
  await kubectl("-n watched run one --image=app:1");
  await untilOutput(/\none +0\/1 +Pending[^]*\none +1\/1 +Running +0 +\d+s\n/);
  await kubectl("-n watched delete pod one --wait=false");
  await untilOutput(/\none +1\/1 +Terminating +0 +\d+s\n/);
  watch.kill();
});
