/** `npm run bench`: every figure that the documentation quotes, as a table on the terminal and in docs/benchmarks.md. */
import { spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { join } from "node:path";
import { benchStart, benchTick, type Row } from "./tick.ts";

const root = join(import.meta.dirname, "../..");
const build = spawnSync("npm", ["run", "--silent", "build"], { cwd: root, stdio: "ignore" });
if (build.status !== 0) throw new Error("the build failed");

// Bundled as the product is: loading TypeScript from node_modules costs time and memory that no user pays.
const bundle = [
  "test/bench/tick-process.ts",
  "--bundle",
  "--platform=node",
  "--target=node24",
  "--format=esm",
  "--minify",
  "--outdir=dist/bench",
];
const require = "--banner:js=import{createRequire as requireForBundle}from'node:module';const require=requireForBundle(import.meta.url);";
if (spawnSync("esbuild", [...bundle, require], { cwd: root, stdio: "ignore" }).status !== 0)
  throw new Error("the benchmark's build failed");

const rows: Row[] = [
  ...(await benchTick(join(root, "dist/bench/tick-process.js"))),
  ...(await benchStart(join(root, "dist/reconciler/main.js"))),
];
const table = ["| what | figures |", "|---|---|", ...rows.map(({ what, figures }) => `| ${what} | ${figures} |`)].join("\n");
const about = `Node ${process.version}, ${cpus().length} cores, ${new Date().toISOString().slice(0, 10)}. Such machines are noisy: compare figures of one run only.`;
console.log(table);
mkdirSync(join(root, "docs"), { recursive: true });
writeFileSync(join(root, "docs/benchmarks.md"), `# Benchmarks\n\nWritten by \`npm run bench\`. ${about}\n\n${table}\n`);
process.exit();
