/** The measured part of the tick bench, in a process of its own to measure its memory: ticks that do not act. */
import { subscribe } from "node:diagnostics_channel";
import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { systemClock } from "../../infra/clock.ts";
import { connectCluster } from "../../infra/kubernetes/connect-cluster.ts";
import { loadConnection } from "../../infra/kubernetes/connection.ts";
import { RolloutError } from "../../infra/errors.ts";
import { createPodHttp } from "../../infra/pod-http.ts";
import { readPeakMb } from "./peak.ts";
import { median } from "./row.ts";
import { tickOnce } from "../reconciler/stage.ts";

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

const TICKS = 8;
const podHttp = createPodHttp({ timeoutMs: 5000, clock: systemClock });

async function once(): Promise<number> {
  const startedAt = performance.now();
  await tickOnce({ clock: systemClock }, cluster, {
    // Decisions of rollouts are made but not executed, so that every tick sees the same cluster.
    fence: {
      write: () => {
        throw new RolloutError("LeaseLost", "a benchmark writes nothing");
      },
    },
    namespaces: [process.env["NAMESPACE"] ?? "default"],
    takeResync: () => process.env["RESYNC"] === "all",
    podHttp,
  });
  return performance.now() - startedAt;
}

const firstMs = await once();
calls = 0;
const before = received();
const times = [await once()];
const perTick = { calls, bytes: received() - before };
for (let i = 0; i < TICKS; i++) times.push(await once());
const figures: TickFigures = { ...perTick, firstMs, ms: median(times), peakMb: readPeakMb() };
process.stdout.write(JSON.stringify(figures), () => process.exit());
