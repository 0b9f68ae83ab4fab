/** The demonstration, started as a user does. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { either } from "../runs.ts";
import { NEXT_COMMANDS } from "./next-commands.ts";

const START = join(import.meta.dirname, "start.ts");
const DRILL = join(import.meta.dirname, "../drill/main.ts");

interface Exit {
  readonly code: number | null;
  readonly output: string;
  readonly errors: string;
}

/** Runs it until it exits; `onOutput` gets everything that was written so far. */
async function start(onOutput: (output: string, interrupt: () => void) => void): Promise<Exit> {
  const child = spawn(process.execPath, [START], { stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  let errors = "";
  let interrupted = false;
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    output += text;
    onOutput(output, () => {
      if (!interrupted) child.kill("SIGINT");
      interrupted = true;
    });
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    errors += text;
  });
  const [code] = (await once(child, "close")) as [number | null];
  return { code, output, errors };
}

describe("npm start", { concurrency: true, timeout: 300_000 }, () => {
  it("serves its namespace: a drill in it holds all promises", async () => {
    let drill: ReturnType<typeof spawn> | undefined;
    let table = "";
    const { output } = await start((printed, interrupt) => {
      const [, kubeconfig] = /export KUBECONFIG=(\S+)/.exec(printed) ?? [];
      if (drill || kubeconfig === undefined) return;
      drill = spawn(process.execPath, [DRILL, "--kubeconfig", kubeconfig], { stdio: ["ignore", "pipe", "ignore"] });
      drill.stdout?.setEncoding("utf8").on("data", (text: string) => (table += text));
      drill.on("close", interrupt);
    });
    assert.match(table, /^8 of 8 promises held: /m, table + output);
  });

  it("rolls out three zones one after the other, scales them one after the other, prints summaries and suggests commands, until Ctrl-C stops it and removes its files", async () => {
    const { code, output, errors } = await start((output, interrupt) => {
      if (output.includes("Press Ctrl-C to stop.\n")) interrupt();
    });
    assert.equal(errors, "");
    assert.equal(code, 0, output);
    const [rollout = "", scaling = ""] = output
      .slice(output.indexOf("the rollout begins"))
      .split("Scaling ingester-zone-a");
    const ended = [...rollout.matchAll(/(ingester-zone-\w) .*terminating/g)].map(([, zone]) => zone);
    assert.deepEqual([...new Set(ended)], ["ingester-zone-a", "ingester-zone-b", "ingester-zone-c"]);
    assert.deepEqual(ended, ended.toSorted());
    assert.match(
      output,
      /^Rolled out 3 zones \(ingester-zone-a, ingester-zone-b, ingester-zone-c\): 9 pods replaced in \d+\.\d s$/m,
    );
    const followed = [
      ...scaling.matchAll(/scaling (ingester-zone-\w) from 3 to 5 replicas, following (ingester-zone-\w)/g),
    ];
    assert.deepEqual(
      followed.map(([, zone, leader]) => [zone, leader]),
      [
        ["ingester-zone-b", "ingester-zone-a"],
        ["ingester-zone-c", "ingester-zone-b"],
      ],
    );
    assert.match(output, /^Scaled 3 zones to 5 replicas in \d+\.\d s$/m);
    const gated = output.slice(output.indexOf("under a gate"));
    const [held = -1, b = -1] = [
      /waits for gate error-rate: check "errors" fails/,
      /ingester-zone-b .*terminating/,
    ].map((line) => gated.search(line));
    assert.ok(gated.search(/ingester-zone-a .*terminating/) < held && held < b, gated);
    assert.match(gated, /^Rolled out 3 zones .*: 15 pods replaced in /m);
    assert.match(gated, /^The gate asked Prometheus \d+ times; 2 answers reported errors\.$/m);
    const drain = output.slice(output.indexOf("Draining node-1"));
    assert.match(
      drain,
      /^ {2}ingester-zone-b-\d, of another zone: admission webhook "pod-eviction-default\.grafana\.com" denied the request: .*(?:not ready|unknown) in ingester-zone-a$/m,
    );
    assert.match(drain, /^Drained node-1 in .*: 5 pods evicted; \d+ evictions were refused for the time being\.$/m);
    assert.match(
      drain,
      /downscale of statefulsets\/ingester-zone-a in default from 5 to 3 replicas is not allowed because it has the label/,
    );
    assert.match(output, /^The status page: http:\/\/127\.0\.0\.1:\d+$/m);
    assert.ok(!output.includes("\u001B"));
    assert.ok(NEXT_COMMANDS.every((line) => output.includes(`\n    ${line}\n`)));
    assert.doesNotMatch(output, /MaxUnavailableReached/);
    const kubeconfig = /export KUBECONFIG=(.+)/.exec(output)?.[1];
    assert.ok(kubeconfig !== undefined && !existsSync(kubeconfig));
  });

  for (const pod of either(["ingester-zone-a-1"], []))
    it(`stops at Ctrl-C in the middle of the rollout, at ${pod}, too`, async () => {
      const { code, output } = await start((output, interrupt) => {
        if (output.includes(`updating ${pod}`)) interrupt();
      });
      assert.equal(code, 0, output);
      assert.doesNotMatch(output, /Rolled out|did not settle/);
    });
});
