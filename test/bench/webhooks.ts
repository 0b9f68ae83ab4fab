/** Measures the shipped webhook server: start-up time, memory and throughput. */
import { join } from "node:path";
import { readResidentMb } from "./peak.ts";
import { NODE_ARGS, SERVER_ARGS } from "./process.ts";
import { reviewRequest, sendLoad } from "./review-load.ts";
import { prepareServers, type ReviewServer } from "./review-server.ts";
import { atMost, type Bench, median } from "./row.ts";

const CONNECTIONS = 8;
const REQUESTS = 40_000;
const STARTS = 6;
const REQUEST = reviewRequest(8);

/** Upstream's figures on such a machine, and the tolerance. */
const START_MS = 255;
const IDLE_MB = 75;
const P50_MS = 0.77;

export const benchWebhooks: Bench = async ({ dist, scratch }) => {
  const startServer = await prepareServers(scratch);
  const args = [...NODE_ARGS, ...SERVER_ARGS, join(dist, "functions/serve.js")];
  const starts: number[] = [];
  const start = async (): Promise<ReviewServer> => {
    const begin = performance.now();
    const server = await startServer(args, REQUEST);
    starts.push(performance.now() - begin);
    return server;
  };
  for (let i = 1; i < STARTS; i++) await (await start()).end();
  const server = await start();
  const idle = readResidentMb(server.pid);
  const load = { requests: [REQUEST], connections: CONNECTIONS };
  await sendLoad(server.target, { ...load, count: REQUESTS / 4 });
  const { perSecond, p50, p99 } = await sendLoad(server.target, { ...load, count: REQUESTS });
  const after = readResidentMb(server.pid);
  await server.end();
  const first = median(starts.slice(1));
  return [
    {
      what: "webhook server, start to first TLS answer",
      figure: `${first.toFixed(0)} ms (best ${Math.min(...starts).toFixed(0)} ms)`,
      aim: atMost(START_MS, " ms", first),
    },
    {
      what: "webhook server, resident",
      figure: `${idle.toFixed(0)} MB idle, ${after.toFixed(0)} MB after ${REQUESTS} requests`,
      aim: atMost(IDLE_MB, " MB idle", idle),
    },
    {
      what: `no-downscale over TLS, ${CONNECTIONS} connections`,
      figure: `${perSecond.toFixed(0)} requests/s, p50 ${p50.toFixed(2)} ms, p99 ${p99.toFixed(2)} ms`,
      aim: atMost(P50_MS, " ms p50", p50),
    },
  ];
};
