/** The demonstration as a user starts it. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";

const START = join(import.meta.dirname, "start.ts");

interface Ending {
  readonly code: number | null;
  readonly output: string;
  readonly complaints: string;
}

/** Runs it to its end; `onOutput` sees all that was written so far. */
async function start(args: readonly string[], onOutput: (output: string, interrupt: () => void) => void = () => {}): Promise<Ending> {
  const child = spawn(process.execPath, [START, ...args], { stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  let complaints = "";
  let interrupted = false;
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    output += text;
    onOutput(output, () => {
      if (!interrupted) child.kill("SIGINT");
      interrupted = true;
    });
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    complaints += text;
  });
  const [code] = (await once(child, "close")) as [number | null];
  return { code, output, complaints };
}

describe("npm start", { concurrency: true, timeout: 90_000 }, () => {
  it("rolls out three zones one after the other, scales them one after the other, sums up and ends with --once", async () => {
    const { code, output, complaints } = await start(["--once"]);
    assert.equal(complaints, "");
    assert.equal(code, 0, output);
    const [rollout = "", scaling = ""] = output.slice(output.indexOf("the rollout begins")).split("Scaling ingester-zone-a");
    const ended = [...rollout.matchAll(/(ingester-zone-\w) .*terminating/g)].map(([, zone]) => zone);
    assert.deepEqual([...new Set(ended)], ["ingester-zone-a", "ingester-zone-b", "ingester-zone-c"]);
    assert.deepEqual(ended, ended.toSorted());
    assert.match(output, /^Rolled out 3 zones \(ingester-zone-a, ingester-zone-b, ingester-zone-c\): 9 pods replaced in \d+\.\d s$/m);
    const followed = [...scaling.matchAll(/scaling (ingester-zone-\w) from 3 to 5 replicas, following (ingester-zone-\w)/g)];
    assert.deepEqual(
      followed.map(([, zone, leader]) => [zone, leader]),
      [
        ["ingester-zone-b", "ingester-zone-a"],
        ["ingester-zone-c", "ingester-zone-b"],
      ],
    );
    assert.match(output, /^Scaled 3 zones to 5 replicas in \d+\.\d s$/m);
    assert.ok(!output.includes("\u001B"));
  });

  it("stays after the rollout with commands to try, until Ctrl-C ends it and leaves nothing behind", async () => {
    const { code, output, complaints } = await start([], (output, interrupt) => {
      if (output.includes("Ctrl-C ends it.\n")) interrupt();
    });
    assert.equal(complaints, "");
    assert.equal(code, 0, output);
    assert.match(output, /^ {4}kubectl get pods -w$/m);
    const kubeconfig = /export KUBECONFIG=(.+)/.exec(output)?.[1];
    assert.ok(kubeconfig !== undefined && !existsSync(kubeconfig));
  });

  it("is ended by Ctrl-C in the middle of the rollout, too", async () => {
    const { code, output } = await start([], (output, interrupt) => {
      if (output.includes("updating ingester-zone-a-1")) interrupt();
    });
    assert.equal(code, 0, output);
    assert.doesNotMatch(output, /Rolled out|come to rest/);
  });
});
