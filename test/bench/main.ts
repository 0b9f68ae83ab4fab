/**
 * `npm run bench` measures every figure in the documentation and writes them to the terminal and
 * docs/benchmarks.md. `node test/bench/main.ts NAME...` runs only the named benches and writes no file.
 */
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { loadavg } from "node:os";
import { join } from "node:path";
import { buildAll } from "../../infra/build.ts";
import { benchAgent } from "./agent.ts";
import { benchChecks } from "./checks.ts";
import { benchCli } from "./cli.ts";
import { benchCompare } from "./compare.ts";
import { benchEvictions } from "./eviction.ts";
import { benchLargeObjects } from "./large-objects.ts";
import { benchMemory } from "./memory.ts";
import { benchNodeUpdates } from "./node-updates.ts";
import { renderPage, renderTable } from "./page.ts";
import { benchFlags, benchRequests } from "./requests.ts";
import { benchRollout } from "./rollout.ts";
import type { Bench, Row } from "./row.ts";
import { benchSettled } from "./settled.ts";
import { benchStart } from "./start.ts";
import { benchStarts } from "./starts.ts";
import { benchStatusPage } from "./status-page.ts";
import { benchTick } from "./tick.ts";
import { benchWebhooks } from "./webhooks.ts";

/** All benches, in the order of the table. A new bench is a file with one such function, and a line here. */
const BENCHES: Readonly<Record<string, Bench>> = {
  rollout: benchRollout,
  tick: benchTick,
  nodes: benchNodeUpdates,
  agent: benchAgent,
  checks: benchChecks,
  settled: benchSettled,
  start: benchStart,
  cli: benchCli,
  memory: benchMemory,
  "large-objects": benchLargeObjects,
  webhooks: benchWebhooks,
  requests: benchRequests,
  flags: benchFlags,
  starts: benchStarts,
  evictions: benchEvictions,
  "status-page": benchStatusPage,
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
if (named.length === 0) {
  await mkdir(join(root, "docs"), { recursive: true });
  await writeFile(join(root, "docs/benchmarks.md"), renderPage(rows, new Date(), load));
}
process.exit();
