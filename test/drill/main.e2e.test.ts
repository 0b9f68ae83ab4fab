/** `npm run drill` as a process whose terminal, or whose readers, go away: what it made goes, and its answer stays. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { it, type TestContext } from "node:test";
import { budgetDefinition } from "../reconciler/budget-stage.ts";
import { make } from "../builders/objects.ts";
import { startEmulator } from "../emulator/index.ts";

const ROOT = join(import.meta.dirname, "../..");
const KINDS = ["statefulsets.apps", "pods", "zoneawarepoddisruptionbudgets.rollout-operator.grafana.com"];

/** Zonewise's CronJob, which is suspended. */
const CRON_JOB = make("CronJob", "zonewise-reconciler", {
  spec: {
    suspend: true,
    schedule: "* * * * *",
    jobTemplate: { spec: { template: { spec: { containers: [{ name: "reconciler", image: "zonewise:x" }] } } } },
  },
});

/**
 * A drill in a cluster without an eviction webhook, whose reconciler does not run; resolves with its exit code, and what
 * it left. `go` is called after its start.
 */
async function endDrill(t: TestContext, timeout: string, go: (child: ChildProcess) => void = () => {}) {
  const emulator = await startEmulator();
  const folder = await mkdtemp(join(tmpdir(), "zonewise-drill-"));
  t.after(async () => {
    await emulator.stop();
    await rm(folder, { recursive: true });
  });
  emulator.store.create("customresourcedefinitions.apiextensions.k8s.io", budgetDefinition());
  const kubeconfig = join(folder, "kubeconfig");
  emulator.store.create("cronjobs.batch", CRON_JOB);
  await emulator.writeKubeconfig(kubeconfig);
  const flags = ["--kubeconfig", kubeconfig, "-n", "default", "--timeout", timeout];
  const child = spawn(process.execPath, ["test/drill/main.ts", ...flags], { cwd: ROOT, timeout: 90_000 });
  let [out, err] = ["", ""];
  child.stdout.on("data", (chunk: Buffer) => (out += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => {
    err += chunk.toString();
    if (err.includes("refusals:")) go(child);
  });
  const code = await new Promise<number | null>((resolve) => child.on("exit", resolve));
  return { code, out, err, left: KINDS.flatMap((kind) => emulator.store.list(kind, "default")).length };
}

it("a terminal that is closed, as often as it is said, is a Ctrl-C", { timeout: 300_000 }, async (t) => {
  const { code, err, left } = await endDrill(t, "60s", (child) => {
    child.kill("SIGHUP");
    setTimeout(() => child.kill("SIGHUP"), 100);
  });
  assert.deepEqual([code, left], [130, 0], err);
});

it("where nobody reads any more, a promise that did not hold is no success", { timeout: 300_000 }, async (t) => {
  const { code, err, left } = await endDrill(t, "8s", (child) => {
    child.stdout?.destroy();
    child.stderr?.destroy();
  });
  assert.deepEqual([code, left], [1, 0], err);
});

it("without an eviction webhook and a reconciler, a table of 80 columns says what did not hold, and what was not seen", async (t) => {
  const { code, out, err, left } = await endDrill(t, "10s");
  assert.deepEqual([code, left], [1, 0], out + err);
  assert.match(out, /^refusals .* did not hold /m);
  assert.match(out, /^rollout +0 of 9 pods +not seen /m);
  assert.match(out, /^one zone at a time: .*-\d was taken\s+while zonewise-drill-/m);
  assert.match(out, /^note: the reconciler has not run yet: CronJob default\/zonewise-reconciler/m);
  assert.ok(out.split("\n").every(({ length }) => length <= 80));
});

for (const [name, flags, says] of [
  ["a time that is none", ["--timeout", "soon"], /not a duration/],
  ["a time without end", ["--timeout", "24h"], /not a duration up to 30m/],
  ["a selector that is none", ["--node-selector", "disk"], /not label=value/],
  ["a flag that there is not", ["--kill"], /--kill/],
] as const)
  it(`it refuses ${name}`, () => {
    const { status, stderr } = spawnSync(process.execPath, ["test/drill/main.ts", ...flags], { cwd: ROOT });
    assert.equal(status, 2);
    assert.match(stderr.toString(), says);
  });
