/**
 * `npm run bench` measures and prints. docs/reference/figures.md has, by hand, what a user decides by. Figures of two runs
 * do not compare: the ratios within one do. All processes are measured as the image starts them, bundled, with the
 * arguments of its ENTRYPOINT; only the rollout runs from source, and only on the cluster in KUBECONFIG.
 *
 *     npm run bench -- tick start              only these
 *     ORIGINAL=/path npm run bench -- compare  the original's server beside ours
 */
import { mkdtemp, rm } from "node:fs/promises";
import { loadavg } from "node:os";
import { join } from "node:path";
import { buildAll } from "../../infra/build.ts";
import { benchCli } from "./cli.ts";
import { benchCompare } from "./compare.ts";
import { benchEvictions } from "./eviction.ts";
import { benchMemory } from "./memory.ts";
import { describeMachine, renderTable } from "./page.ts";
import { benchRollout } from "./rollout.ts";
import type { Bench, Row } from "./row.ts";
import { benchSettled } from "./settled.ts";
import { benchStart } from "./start.ts";
import { benchTick } from "./tick.ts";
import { benchWebhooks } from "./webhooks.ts";

/** All benches, in the order of the table. A new bench is a file with one such function, and a line here. */
const BENCHES: Readonly<Record<string, Bench>> = {
  rollout: benchRollout,
  tick: benchTick,
  settled: benchSettled,
  start: benchStart,
  cli: benchCli,
  memory: benchMemory,
  webhooks: benchWebhooks,
  evictions: benchEvictions,
  compare: benchCompare,
};

/** Run only by their names: they take long, or need what few machines have. */
const BY_NAME = new Set(["settled", "compare"]);

const root = join(import.meta.dirname, "../..");
const named = process.argv.slice(2);
const unknown = named.filter((name) => !(name in BENCHES));
if (unknown.length > 0)
  throw new Error(`there is no ${unknown.join(", ")}; there are ${Object.keys(BENCHES).join(", ")}`);

const [load = Number.NaN] = loadavg();
const dist = join(root, "dist");
await buildAll(root, dist);
const scratch = await mkdtemp(join(dist, "bench-"));
const rows: Row[] = [];
try {
  for (const [name, bench] of Object.entries(BENCHES))
    if (named.includes(name) || (named.length === 0 && !BY_NAME.has(name)))
      rows.push(...(await bench({ root, dist, scratch })));
} finally {
  await rm(scratch, { recursive: true });
}
console.log(renderTable(rows));
console.log(describeMachine(new Date(), load));
process.exit();
