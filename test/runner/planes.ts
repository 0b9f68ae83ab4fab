/**
 * Runs the tests on a real cluster, file by file, on the cluster in KUBECONFIG; several processes, each with a control
 * plane of its own, share the files.
 *
 *     node test/runner/planes.ts FOLDER [--real-node]
 *
 * FOLDER is empty at first, and the same for all processes. `--real-node`: this control plane has the real node; it
 * takes the tests there first, as they take longest, and no other takes them.
 */
import { spawnSync } from "node:child_process";
import { closeSync, globSync, openSync, readFileSync, renameSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { buildEntries } from "./build.ts";
import { filesFor, ROOT } from "./files.ts";
import { takeEach } from "./queue.ts";

/**
 * Whether all tests of the file have passed. What it printed comes at once when it has ended, and stays in the folder
 * as `*.failed` if not.
 */
function hasPassed(file: string, folder: string): boolean {
  const path = join(folder, `${encodeURIComponent(file)}.printed`);
  const output = openSync(path, "w");
  const startedAt = performance.now();
  const { status } = spawnSync(process.execPath, ["--run", "test:cluster"], {
    cwd: ROOT,
    // Hundreds of processes are started and killed: each finds compiled what another one was.
    env: { ...process.env, CLUSTER_TESTS: file, NODE_COMPILE_CACHE: join(folder, "compiled") },
    stdio: ["ignore", output, output],
  });
  const seconds = Math.round((performance.now() - startedAt) / 1000);
  writeSync(output, `== ${file}: ${status === 0 ? "passed" : "failed"} in ${seconds} s\n`);
  closeSync(output);
  process.stdout.write(readFileSync(path));
  if (status === 0) rmSync(path);
  else renameSync(path, join(folder, `${encodeURIComponent(file)}.failed`));
  return status === 0;
}

if (import.meta.main) {
  const { values, positionals } = parseArgs({
    options: { "real-node": { type: "boolean", default: false } },
    allowPositionals: true,
  });
  const [folder] = positionals;
  if (folder === undefined) throw new Error("which folder?");
  await buildEntries();
  const all = globSync("test/cluster/**/*.cluster.ts", { cwd: ROOT });
  for (const file of takeEach(filesFor(all, values["real-node"]), folder))
    if (!hasPassed(file, folder)) process.exitCode = 1;
}
