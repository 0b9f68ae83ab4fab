/**
 * The CLI as it is built: milliseconds from its start to its first line, and calls and milliseconds of its commands on
 * a large cluster.
 */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { systemClock } from "../../infra/clock.ts";
import { define } from "../demo/definitions.ts";
import { composeReconciler } from "../demo/reconcile.ts";
import { startEmulator, type Emulator } from "../emulator/index.ts";
import { createGroups, touchZone } from "./groups.ts";
import { atMost, type Bench, median, type Row } from "./row.ts";

const STARTS = 10;
const AIM_MS = 200;
const SIZE = { groups: 300, replicas: 3 };
const GROUP = "g7";

export const benchCli: Bench = async ({ dist, scratch }) => {
  const main = join(dist, "cli/main.js");
  const help = await repeat(() => run(main, ["--help"], {}));
  const start: Row = {
    what: "`zonewise`, start to first line",
    figure: describe(help),
    aim: atMost(AIM_MS, " ms", median(help)),
  };
  const emulator = await startEmulator();
  try {
    const kubeconfig = join(scratch, "kubeconfig");
    await emulator.writeKubeconfig(kubeconfig);
    await define(emulator.store, ["rolloutgates", "rolloutgroups", "zoneawarepoddisruptionbudgets", "phasedrollouts"]);
    await createGroups(emulator, SIZE);
    await recordAll(kubeconfig);
    for (const zone of ["a", "b", "c"]) await touchZone(emulator, `${GROUP}-zone-${zone}`);
    const rows: Row[] = [];
    for (const line of [
      `plan ${GROUP}`,
      `explain ${GROUP}`,
      `explain pod/${GROUP}-zone-a-0`,
      `status ${GROUP}`,
      "status --watch=false",
      "doctor",
    ])
      rows.push(await measure(line, { emulator, main, kubeconfig }));
    return [start, ...rows];
  } finally {
    await emulator.stop();
  }
};

/** Lets a reconciler record all groups. */
async function recordAll(kubeconfig: string): Promise<void> {
  const stop = new AbortController();
  const onLog = (_level: string, message: string): void => (message === "tick" ? stop.abort() : undefined);
  const reconciler = await composeReconciler({ kubeconfig, namespace: "default", clock: systemClock, onLog });
  const running = reconciler.runUntil(stop.signal);
  await systemClock.sleep(15_000, stop.signal);
  stop.abort();
  await running;
}

interface Stage {
  readonly emulator: Emulator;
  readonly main: string;
  readonly kubeconfig: string;
}

async function measure(line: string, { emulator, main, kubeconfig }: Stage): Promise<Row> {
  // A fault that does nothing counts the calls.
  const remove = emulator.faults.inject({ effect: { kind: "latency", ms: 0 } });
  const before = emulator.faults.struck();
  const times = await repeat(() => run(main, line.split(" "), { KUBECONFIG: kubeconfig }));
  const calls = (emulator.faults.struck() - before) / times.length;
  remove();
  return {
    what: `\`zonewise ${line}\`, ${SIZE.groups} groups of three zones in the namespace`,
    figure: `${describe(times)}, ${calls.toFixed(0)} calls`,
  };
}

async function repeat(once: () => Promise<number>): Promise<number[]> {
  await once();
  const times: number[] = [];
  for (let i = 0; i < STARTS; i++) times.push(await once());
  return times;
}

/** Milliseconds to the first output. */
async function run(main: string, args: readonly string[], env: Readonly<Record<string, string>>): Promise<number> {
  const startedAt = performance.now();
  const child = spawn(process.execPath, [main, ...args], {
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const first = await new Promise<number>((resolve) => {
    child.stdout.once("data", () => resolve(performance.now() - startedAt));
    child.once("close", () => resolve(performance.now() - startedAt));
    child.stdout.resume();
  });
  if (child.exitCode === null) await new Promise((resolve) => child.once("close", resolve));
  return first;
}

const describe = (times: readonly number[]): string =>
  `${median(times).toFixed(0)} ms (best ${Math.min(...times).toFixed(0)} ms)`;
