/** Peak memory of the bundled reconciler with 15,000 pods, all of which it has to list. */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { startEmulator } from "../emulator/index.ts";
import { createGroups, type Size } from "./groups.ts";
import { readPeakMb } from "./peak.ts";
import { MALLOC_ENV, NODE_ARGS } from "./process.ts";
import { atMost, type Bench, type Row } from "./row.ts";

const AIM_MB = 150;
/** Enough for all pods to be listed beside the ticks. */
const TICKS = 12;
const SIZES: readonly Size[] = [
  { groups: 50, replicas: 100 },
  { groups: 5, replicas: 1000 },
];

export const benchMemory: Bench = async ({ dist, scratch }) => {
  const rows: Row[] = [];
  for (const size of SIZES) {
    const peakMb = await measurePeak(join(dist, "reconciler/main.js"), join(scratch, "kubeconfig"), size);
    const what = `peak memory, a resync of ${size.groups} groups of 3 x ${size.replicas} pods`;
    rows.push({ what, figure: `${peakMb.toFixed(0)} MB`, aim: atMost(AIM_MB, " MB", peakMb) });
  }
  return rows;
};

/** The process's peak once its ticks have listed every pod, as no resync is recorded yet. */
async function measurePeak(main: string, kubeconfig: string, size: Size): Promise<number> {
  const emulator = await startEmulator();
  try {
    await emulator.writeKubeconfig(kubeconfig);
    await createGroups(emulator, size);
    const env = {
      ...process.env,
      ...MALLOC_ENV,
      KUBECONFIG: kubeconfig,
      KUBERNETES_NAMESPACE: "default",
      RECONCILE_INTERVAL: "1s",
    };
    const child = spawn(process.execPath, [...NODE_ARGS, main], { env, stdio: ["ignore", "pipe", "inherit"] });
    let ticks = 0;
    let peakMb = Number.NaN;
    for await (const line of createInterface(child.stdout)) {
      if (!line.includes('"msg":"tick"') || ++ticks !== TICKS) continue;
      peakMb = readPeakMb(child.pid);
      child.kill();
    }
    return peakMb;
  } finally {
    await emulator.stop();
  }
}
