/** Ways to list 15,000 pods: bytes, time and peak memory, each bundled and in a process of its own. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { build } from "esbuild";
import { BUNDLE, bundle } from "../../infra/build.ts";
import { generateCertificates } from "../../infra/certs/act/generate.ts";
import type { ListFigures } from "./client-figures.ts";
import { startPodServer } from "./pod-server.ts";
import { measure } from "./process.ts";
import type { Bench, Row } from "./row.ts";

const PODS = 15_000;
const RUNS = 3;

/** By the name of the row: the program, its objects a page, and what our own port asks for. */
const WAYS: Readonly<Record<string, readonly ["client-typed" | "client-plain", number, ("json" | "protobuf")?]>> = {
  "client-node's typed client, in one": ["client-typed", 0],
  "client-node's typed client, pages of 500": ["client-typed", 500],
  "our own port, JSON, in one": ["client-plain", 0, "json"],
  "our own port, JSON, pages of 500": ["client-plain", 500, "json"],
  "our own port, JSON, pages of 100": ["client-plain", 100, "json"],
  "our own port, protobuf, in one": ["client-plain", 0],
  "our own port, protobuf, pages of 2500": ["client-plain", 2500],
  "our own port, protobuf, pages of 500 as everywhere": ["client-plain", 500],
  "our own port, protobuf, pages of 100": ["client-plain", 100],
};

export const benchClient: Bench = async ({ root, scratch }) => {
  // As the product is bundled, and in full: what the product leaves out is what the typed client runs on.
  await bundle({ "client-plain": "test/bench/client-plain.ts" }, root, scratch);
  await build({ ...BUNDLE, absWorkingDir: root, entryPoints: ["test/bench/client-typed.ts"], outdir: scratch });
  const certificate = {
    dnsNames: ["localhost"],
    ipAddresses: ["127.0.0.1"],
    organization: "bench",
    validityDays: 1,
    now: new Date(),
  };
  const tls = await generateCertificates(certificate);
  const server = await startPodServer(PODS, { cert: tls.certPem, key: tls.keyPem });
  const kubeconfig = join(scratch, "kubeconfig");
  await writeFile(kubeconfig, kubeconfigFor(server.url, tls.caPem));
  const rows: Row[] = [];
  for (const [name, [program, pageSize, form = "protobuf"]] of Object.entries(WAYS)) {
    const before = server.sentBytes();
    const runs: ListFigures[] = [];
    for (let i = 0; i < RUNS; i++)
      runs.push(await measure<ListFigures>(join(scratch, `${program}.js`), [kubeconfig, String(pageSize), form]));
    const megabytes = (server.sentBytes() - before) / RUNS / 1e6;
    rows.push({
      what: `list of ${PODS.toLocaleString("en")} pods, ${name}`,
      figure: `${megabytes.toFixed(1)} MB, ${show(runs)}`,
    });
  }
  server.close();
  return rows;
};

/** Of each figure the best. */
function show(runs: readonly ListFigures[]): string {
  if (!runs.every(({ seen }) => seen === PODS))
    throw new Error(`a list was not whole: ${runs.map(({ seen }) => seen).join(", ")}`);
  const least = (pick: (figures: ListFigures) => number): string => Math.min(...runs.map(pick)).toFixed(0);
  return `load ${least(({ loadMs }) => loadMs)} ms, list ${least(({ listMs }) => listMs)} ms, peak ${least(({ peakMb }) => peakMb)} MB`;
}

function kubeconfigFor(server: string, caPem: string): string {
  return JSON.stringify({
    clusters: [
      { name: "bench", cluster: { server, "certificate-authority-data": Buffer.from(caPem).toString("base64") } },
    ],
    users: [{ name: "bench", user: { token: "bench" } }],
    contexts: [{ name: "bench", context: { cluster: "bench", user: "bench" } }],
    "current-context": "bench",
  });
}
