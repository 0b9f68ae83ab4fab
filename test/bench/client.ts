/** Measures ways to list many pods: bytes received, time and peak memory, each bundled and in a process of its own. `node test/bench/client.ts [pods]` */
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { build } from "esbuild";
import { generateCertificates } from "../../infra/certs/generate.ts";
import { type Figures, VARIANTS } from "./client-variants.ts";
import { startPodServer } from "./pod-server.ts";

const run = promisify(execFile);
const RUNS = 3;

/** Prints the table of all variants: of a few runs each, the fastest. */
async function compare(count: number): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), "zonewise-bench-"));
  const program = join(directory, "variants.mjs");
  await bundleVariants(program);
  const tls = await generateCertificates({
    dnsNames: ["localhost"],
    ipAddresses: ["127.0.0.1"],
    organization: "bench",
    validityDays: 1,
    now: new Date(),
  });
  const server = await startPodServer(count, { cert: tls.certPem, key: tls.keyPem });
  const kubeconfig = join(directory, "kubeconfig");
  writeFileSync(kubeconfig, kubeconfigFor(server.url, tls.caPem));
  const rows: Record<string, Record<string, number>> = {};
  for (const name of Object.keys(VARIANTS)) {
    const before = server.sentBytes();
    const results: Figures[] = [];
    for (let at = 0; at < RUNS; at++)
      results.push(JSON.parse((await run(process.execPath, [program, name, kubeconfig])).stdout) as Figures);
    const least = (pick: (figures: Figures) => number): number => Math.round(Math.min(...results.map(pick)));
    const megabytes = (server.sentBytes() - before) / RUNS / 1e6;
    rows[name] = {
      pods: least(({ seen }) => seen),
      MB: Number(megabytes.toFixed(1)),
      "load ms": least(({ loadMs }) => loadMs),
      "list ms": least(({ listMs }) => listMs),
      "peak MB": least(({ peakMb }) => peakMb),
    };
  }
  console.table(rows);
  server.close();
  rmSync(directory, { recursive: true });
}

async function bundleVariants(outfile: string): Promise<void> {
  const banner = { js: 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);' };
  const entryPoints = [join(import.meta.dirname, "client-variants.ts")];
  await build({ entryPoints, outfile, banner, bundle: true, format: "esm", platform: "node", target: "node24" });
}

function kubeconfigFor(server: string, caPem: string): string {
  return JSON.stringify({
    clusters: [{ name: "bench", cluster: { server, "certificate-authority-data": Buffer.from(caPem).toString("base64") } }],
    users: [{ name: "bench", user: { token: "bench" } }],
    contexts: [{ name: "bench", context: { cluster: "bench", user: "bench" } }],
    "current-context": "bench",
  });
}

await compare(Number(process.argv[2] ?? 15_000));
