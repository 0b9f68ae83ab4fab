/** The lines of docs/contribute/testing.md work against the demonstration's cluster, in their order. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { test } from "node:test";
import { promisify } from "node:util";
import { connectCluster } from "../../infra/kubernetes/connect-cluster.ts";
import { loadConnection } from "../../infra/kubernetes/connection.ts";
import { define } from "../demo/definitions.ts";
import { applySample } from "../demo/sample.ts";
import { startEmulator } from "../emulator/index.ts";
import { run } from "../functions/process.ts";
import { writeKubeconfig } from "../functions/stage.ts";
import { SERVING } from "../functions/target.ts";
import { freePort } from "../loopback.ts";
import { readPage, ROOT } from "./pages.ts";

interface Session {
  /** What starts the function. */
  readonly start: string;
  /** Each command with a part of its answer. */
  readonly calls: readonly (readonly [command: string, expected: string])[];
}

function readSessions(page: string): Session[] {
  const lines = page.split("\n").flatMap((line) => (line.startsWith("    ") ? [line.trim()] : []));
  const sessions: { start: string; calls: [string, string][] }[] = [];
  for (const [index, line] of lines.entries()) {
    if (line.startsWith("npx ")) sessions.push({ start: line, calls: [] });
    const [, expected] = /^# -> (.*)$/.exec(line) ?? [];
    if (expected !== undefined) sessions.at(-1)?.calls.push([lines[index - 1] ?? "", expected]);
  }
  return sessions;
}

test("each line answers as the page says", { timeout: 180_000 }, async (t) => {
  const sessions = readSessions(readPage("docs/contribute/testing.md"));
  assert.deepEqual(
    sessions.map(({ calls }) => calls.length),
    [2, 1, 1],
  );
  const emulator = await startEmulator();
  t.after(() => emulator.stop());
  const KUBECONFIG = await writeKubeconfig(t, { emulator });
  await define(emulator.store, ["rolloutgroups", "zoneawarepoddisruptionbudgets"]);
  const connection = await loadConnection({ kubeconfig: KUBECONFIG });
  await applySample(connectCluster(connection, { timeoutMs: 60_000 }), "default");
  connection.close();
  const isReady = (set: object): boolean =>
    (set as { status?: { readyReplicas?: number } }).status?.readyReplicas === 3;
  while (!emulator.store.list("statefulsets.apps", "default").every(isReady)) await sleep(50);

  for (const { start, calls } of sessions) {
    const port = String(await freePort());
    // What npx runs; a shell of its own between would keep signals from it.
    const inShell = (command: string): string[] => ["-c", command.replaceAll("8080", port)];
    const target = run(
      t,
      "bash",
      inShell(start.replace("npx ", "exec node_modules/.bin/")),
      { KUBECONFIG, KUBERNETES_NAMESPACE: "default", HOME: process.env["HOME"] ?? "" },
      ROOT,
    );
    await target.says(SERVING);
    for (const [command, expected] of calls) {
      const { stdout } = await promisify(execFile)("bash", inShell(command), { cwd: ROOT, timeout: 30_000 });
      assert.ok(stdout.includes(expected), `${command}\n${stdout}`);
    }
    target.child.kill("SIGTERM");
    await target.exited;
  }
});
