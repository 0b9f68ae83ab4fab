/**
 * The measured part of the tick benches, in a process of its own to measure its memory: ticks that do not act, or with
 * CHECKS ticks that ask Prometheus and write the results.
 */
import { subscribe } from "node:diagnostics_channel";
import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { systemClock } from "../../infra/clock.ts";
import { connectCluster } from "../../infra/kubernetes/connect-cluster.ts";
import { loadConnection } from "../../infra/kubernetes/connection.ts";
import { RolloutError } from "../../infra/errors.ts";
import { createMetrics } from "../../infra/metrics/metrics.ts";
import { createPodHttp } from "../../infra/pod-http.ts";
import { createPrometheusClient } from "../../infra/prometheus/act/client.ts";
import { createChecker } from "../../reconciler/checks/act/ask-prometheus.ts";
import { createGates } from "../../reconciler/gates/act/tick-gates.ts";
import { createPhasedTick } from "../../reconciler/phased/act/phased-tick.ts";
import { createReferences } from "../../reconciler/scaling/act/references.ts";
import { createPodNotifier } from "../../reconciler/scaling/act/pod-notifier.ts";
import { tick } from "../../reconciler/run/tick.ts";
import { readPeakMb } from "./peak.ts";
import { median } from "./row.ts";
import { noChecks, noPhases } from "../reconciler/stage.ts";

export interface TickFigures {
  readonly calls: number;
  readonly bytes: number;
  /** The first tick, including connections and cold code. */
  readonly firstMs: number;
  /** The median of further ticks. */
  readonly ms: number;
  readonly peakMb: number;
}

const connection = await loadConnection({ kubeconfig: process.env["KUBECONFIG"] });
let calls = 0;
const observer = { answered: () => void calls++, rateLimited: () => {} };
const cluster = connectCluster(connection, { timeoutMs: 60_000, observer });
const sockets = new Set<Socket>();
subscribe("http.client.response.finish", (message) =>
  sockets.add((message as { response: IncomingMessage }).response.socket),
);
const received = (): number => [...sockets].reduce((sum, { bytesRead }) => sum + bytesRead, 0);

const podHttp = createPodHttp({ timeoutMs: 5000, clock: systemClock });

const { CHECKS: checks, TICKS: ticks = "8", PAUSE_MS: pauseMs = "0" } = process.env;
const log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
const metrics = createMetrics();
const prometheus = createPrometheusClient({ timeoutMs: 5000, allowedHosts: [] });
const asking = {
  checker: createChecker({ cluster, prometheus, clock: systemClock }),
  gates: createGates({
    clock: systemClock,
    log,
    metrics: metrics.gates,
  }),
};
const phased = createPhasedTick({
  clock: systemClock,
  log,
  metrics: metrics.phased,
  mayDisrupt: async () => undefined,
  successWhen: "NoData",
});

async function once(): Promise<number> {
  await sleep(Number(pauseMs));
  const startedAt = performance.now();
  await tick({
    context: {
      cluster,
      // Decisions of rollouts are made but not executed, so that every tick sees the same cluster.
      fence: {
        write: () => {
          if (checks) return {};
          throw new RolloutError("LeaseLost", "a benchmark writes nothing");
        },
      },
      clock: systemClock,
      stop: new AbortController().signal,
    },
    namespaces: [process.env["NAMESPACE"] ?? "default"],
    takeResync: () => process.env["RESYNC"] === "all",
    scaling: {
      references: createReferences(cluster),
      podHttp,
      notifier: createPodNotifier({
        http: podHttp,
        clock: systemClock,
        onNote: () => {},
        signal: new AbortController().signal,
      }),
      clusterDomain: "cluster.local.",
      zoneTracker: "rollout-operator-zone-tracker",
      pinnedUntil: new Map(),
      mayDownscale: async () => undefined,
    },
    budgets: {
      mayDisrupt: async () => undefined,
      maintenance: {
        beginTick: async () => ({ all: async () => [], of: async () => [] }),
        maintainGroup: async () => {},
        sweep: async () => {},
      },
    },
    report: { emitEvents: () => {}, timesSuperseded: () => 0, onOutcome: () => {} },
    checking: checks ? asking : noChecks,
    phased: checks ? phased : noPhases,
  });
  return performance.now() - startedAt;
}

const firstMs = await once();
calls = 0;
const before = received();
const times = [await once()];
const perTick = { calls, bytes: received() - before };
for (let i = 0; i < Number(ticks); i++) times.push(await once());
const figures: TickFigures = { ...perTick, firstMs, ms: median(times), peakMb: readPeakMb() };
process.stdout.write(JSON.stringify(figures), () => process.exit());
