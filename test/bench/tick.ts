/**
 * A tick over 50 groups of 3 zones of 100 pods on the embedded cluster: API calls, bytes received,
 * milliseconds.
 */
import { join } from "node:path";
import { bundle } from "../../infra/build.ts";
import { startEmulator } from "../emulator/index.ts";
import { createGroups, touchZone } from "./groups.ts";
import { measure } from "./process.ts";
import type { Aim, Bench } from "./row.ts";
import type { TickFigures } from "./tick-process.ts";

const ROLLING_MS = 300;

export const benchTick: Bench = async ({ root, scratch }) => {
  await bundle({ "tick-process": "test/bench/tick-process.ts" }, root, scratch);
  const emulator = await startEmulator();
  const kubeconfig = join(scratch, "kubeconfig");
  const run = (RESYNC = ""): Promise<TickFigures> =>
    measure<TickFigures>(join(scratch, "tick-process.js"), [], { KUBECONFIG: kubeconfig, RESYNC });
  try {
    await emulator.writeKubeconfig(kubeconfig);
    await createGroups(emulator, { groups: 50, replicas: 100 });
    const settled = await run();
    const all = await run("all");
    await touchZone(emulator, "g7-zone-b");
    const rolling = await run();
    return [
      {
        what: "tick, 50 groups of 3 x 100 pods, settled",
        figure: show(settled),
        aim: { text: "1 call", met: settled.calls === 1 },
      },
      { what: "the same, one group rolling out", figure: show(rolling), aim: below(ROLLING_MS, rolling) },
      { what: "the same, a resync of every pod", figure: show(all) },
    ];
  } finally {
    await emulator.stop();
  }
};

function below(limit: number, { ms, firstMs }: TickFigures): Aim {
  return { text: `below ${limit} ms`, met: Math.max(ms, firstMs) < limit };
}

function show({ calls, bytes, ms, firstMs, peakMb }: TickFigures): string {
  const size = bytes < 1e6 ? `${(bytes / 1e3).toFixed(0)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
  return `${calls} ${calls === 1 ? "call" : "calls"}, ${size}, ${ms.toFixed(0)} ms (first ${firstMs.toFixed(0)} ms), peak ${peakMb.toFixed(0)} MB`;
}
