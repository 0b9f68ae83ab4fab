/** The demonstration of node updates, started as a user does. */
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { it } from "node:test";
import { promisify } from "node:util";

const START = join(import.meta.dirname, "../start.ts");
const CLI = join(import.meta.dirname, "../../../cli/main.ts");

async function start(args: readonly string[], onOutput: (output: string, interrupt: () => void) => void = () => {}) {
  const child = spawn(process.execPath, [START, "nodes", ...args], { stdio: ["ignore", "pipe", "pipe"] });
  let [output, errors] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (text: string) => onOutput((output += text), () => child.kill("SIGINT")));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (errors += text));
  const [code] = (await once(child, "close")) as [number | null];
  return { code, output, errors };
}

it(
  "npm start -- nodes updates three nodes one after the other, and exits with --once",
  { timeout: 300_000 },
  async () => {
    const { code, output, errors } = await start(["--once"]);
    assert.equal(errors, "");
    assert.equal(code, 0, output);
    const down = [...output.matchAll(/(node-\d) .*is down/g)].map(([, node]) => node);
    assert.deepEqual([...new Set(down)], ["node-1", "node-2", "node-3"]);
    assert.deepEqual(down, down.toSorted());
    assert.match(
      output,
      /^Updated 3 nodes from 1\.0\.0 to 1\.1\.0 in \d+\.\d s: 3 reboots, at most 1 node cordoned at once\.$/m,
    );
    assert.doesNotMatch(output, /\bfailed\b/);
  },
);

it("npm start -- nodes stops at Ctrl-C in the middle of an update", { timeout: 300_000 }, async () => {
  const { code, output } = await start([], (text, interrupt) => text.includes("stages 1.1.0") && interrupt());
  assert.equal(code, 0, output);
  assert.doesNotMatch(output, /^Updated|were not updated/m);
});

it("npm start -- nodes has all definitions that the command line needs", { timeout: 300_000 }, async () => {
  const run = async (KUBECONFIG: string, ...words: string[]): Promise<string> => {
    const env = { ...process.env, KUBECONFIG };
    // Exit code 3: not done yet.
    const ended = promisify(execFile)(process.execPath, [CLI, ...words], { env });
    const { stdout, stderr } = await ended.catch((error: { stdout: string; stderr: string }) => error);
    return `${stdout}${stderr}`;
  };
  let answers: Promise<string[]> | undefined;
  const { code } = await start([], (text, interrupt) => {
    const [, kubeconfig] = /KUBECONFIG=(\S+)/.exec(text) ?? [];
    if (kubeconfig === undefined || answers) return;
    answers = Promise.all([run(kubeconfig, "status", "--no-watch"), run(kubeconfig, "explain", "node-1")]);
    void answers.finally(interrupt);
  });
  const [status = "", explained = ""] = (await answers) ?? [];
  assert.equal(code, 0);
  assert.match(status, /^ingester +Ready/m);
  assert.match(explained, /^node\/node-1\n[^]*^ +blocks +pod\/ingester-zone-a-0/m);
});
