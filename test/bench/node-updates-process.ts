/** The measured part of the bench of node updates: passes in a process of its own. */
import { systemClock } from "../../infra/clock.ts";
import { connectCluster } from "../../infra/kubernetes/connect-cluster.ts";
import { loadConnection } from "../../infra/kubernetes/connection.ts";
import { createLog } from "../../infra/log.ts";
import { createMetrics } from "../../infra/metrics/metrics.ts";
import { createNodeUpdates } from "../../reconciler/nodes/act/update-nodes.ts";
import { readPeakMb } from "./peak.ts";
import { median } from "./row.ts";

export interface NodeFigures {
  readonly calls: number;
  /** Calls that write. */
  readonly writes: number;
  /** The first pass, which reads all nodes and writes the policy's status. */
  readonly firstMs: number;
  /** The median of further passes. */
  readonly ms: number;
  readonly peakMb: number;
}

const connection = await loadConnection({ kubeconfig: process.env["KUBECONFIG"] });
let calls = 0;
let writes = 0;
const observer = {
  answered: ({ method }: { readonly method: string }) => {
    calls++;
    if (method.toUpperCase() !== "GET") writes++;
  },
  rateLimited: () => {},
};
const cluster = connectCluster(connection, { timeoutMs: 60_000, observer });
const log = createLog({ level: "warn", write: (line) => void process.stderr.write(line), now: () => new Date() });
const update = createNodeUpdates({
  clock: systemClock,
  log,
  metrics: createMetrics(),
  checker: { begin: () => ({ ask: async () => undefined, [Symbol.dispose]: () => {} }) },
  namespace: "brupop",
  secretsNamespace: "zonewise",
  ownNode: undefined,
  intervalMs: 5000,
  defaultSpec: {},
});
const context = {
  cluster,
  fence: { write: () => ({}) },
  stop: new AbortController().signal,
};
const tools = {
  recorder: { emitEvents: () => {}, flush: async () => {} },
  annotations: new Map<string, string>(),
};

async function once(): Promise<number> {
  const startedAt = performance.now();
  await update(context, tools);
  return performance.now() - startedAt;
}

const firstMs = await once();
while (await update(context, tools));
[calls, writes] = [0, 0];
const times = [await once()];
const perPass = { calls, writes };
for (let i = 0; i < 8; i++) times.push(await once());
const figures: NodeFigures = { ...perPass, firstMs, ms: median(times), peakMb: readPeakMb() };
process.stdout.write(JSON.stringify(figures), () => process.exit());
