/** The table of all figures, and the page around it. */
import { availableParallelism, cpus, totalmem } from "node:os";
import type { Row } from "./row.ts";

export function renderTable(rows: readonly Row[]): string {
  const lines = rows.map(
    ({ what, figure, aim }) => `| ${what} | ${figure} | ${aim ? `${aim.text}${aim.met ? "" : ": **missed**"}` : ""} |`,
  );
  return ["| what | figure | aim |", "|---|---|---|", ...lines].join("\n");
}

/** `load`: runnable processes, over the minute before the first bench. */
export function renderPage(rows: readonly Row[], now: Date, load: number): string {
  const machine = `${availableParallelism()} cores (${cpus()[0]?.model.trim() ?? "unknown"}), ${Math.round(totalmem() / 2 ** 30)} GB`;
  return `# Benchmarks

How fast Zonewise is and what it costs: time, calls and memory, measured, with the aim where there is one.

${machine}, Node ${process.version}, ${now.toISOString().slice(0, 10)}; load average before it began: ${load.toFixed(1)}.
Such machines are noisy, and figures of two runs do not compare: what counts are the ratios within one.

${renderTable(rows)}

Written by \`npm run bench\`; the rollout is left out unless \`KUBECONFIG\` names a cluster, which should be a real control plane and obey the
\`sim/*\` annotations of its pods. \`node test/bench/main.ts tick start\` runs only those two and writes nothing. All processes are measured as the
image starts them: bundled, with the arguments of the Dockerfile's \`ENTRYPOINT\`; only the rollout runs from source.
Pods are about 8 kB each, as those of ring-based databases are.
Some 45 to 50 MB of the webhook server's memory are pages of the Node.js executable, which all its pods on a machine share.
CPU of a request: of all threads of the server, on 8 connections over TLS, the median of 9 alternating rounds of 3,000 requests; in brackets
relative to the server as shipped, in the same rounds. Node's floor is a server (test/bench/bare-server.js) that reads and writes JSON over TLS and
decides nothing. \`BENCH_BEFORE=/other/dist npm run bench -- requests\` measures other builds beside this one, \`npm run bench -- flags\` sets of flags.
The webhook server keeps \`--optimize-for-size --no-maglev\` and 1 MB for young objects: it holds 78 to 79 MB after load, where Node's floor holds 68 with
these flags and 74 without. Without them, or with more room for young objects, it holds 2 to 21 MB more, and a request costs a tenth less, about as much
as two runs differ (a shorter one gave 0.68 to 0.84 with reviews of 3 kB, and 1.06 to 1.16 with 15 kB). Of the two aims, 75 MB after load is missed by
4 MB, of which Node.js alone takes all but 7; 1.5 times the original's rate was not measured here, as that needs its binary.
A plain list reads the same pods by our own port, to its end, in a process with the default heap: in JSON as clients do by default, and in protobuf as
the server does. Before the server read protobuf, an allowed eviction of 1,500 pods took 3.1 times the list in JSON.
`;
}
