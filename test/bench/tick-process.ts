/** The measured half of the tick benchmark: ticks without acting, in a process of its own so that its memory is its own. */
import { systemClock } from "../../infra/clock.ts";
import { connectCluster } from "../../infra/cluster.ts";
import { loadConnection } from "../../infra/connection.ts";
import { RolloutError } from "../../infra/errors.ts";
import { createPodHttp } from "../../infra/pod-http.ts";
import { createReferences } from "../../reconciler/gather-scaling.ts";
import { tick } from "../../reconciler/tick.ts";

const connection = await loadConnection({ kubeconfig: process.env["KUBECONFIG"] });
let calls = 0;
const observer = { answered: () => void calls++, rateLimited: () => {} };
const cluster = connectCluster(connection, { timeoutMs: 60_000, observer });

async function once(): Promise<number> {
  const startedAt = performance.now();
  await tick({
    cluster,
    // Judged in full, but never carried out: each tick meets the same cluster.
    fence: {
      write: () => {
        throw new RolloutError("LeaseLost", "a benchmark writes nothing");
      },
    },
    namespaces: ["default"],
    freshness: new Map(),
    mayDisrupt: async () => undefined,
    lookCloser: () => process.env["LOOK"] === "all",
    timesOutrun: () => 0,
    onOutcome: () => {},
    monotonic: () => performance.now(),
    stop: new AbortController().signal,
    references: createReferences(cluster),
    podHttp: createPodHttp({ timeoutMs: 5000, clock: systemClock }),
    clusterDomain: "cluster.local.",
    zoneTracker: "rollout-operator-zone-tracker",
    now: systemClock.now,
  });
  return performance.now() - startedAt;
}

const firstMs = await once();
calls = 0;
const times = [await once()];
const perTick = calls;
for (let i = 0; i < 8; i++) times.push(await once());
const median = times.toSorted((a, b) => a - b)[4] ?? 0;
const rssMb = process.resourceUsage().maxRSS / 1024;
console.log(JSON.stringify({ calls: perTick, firstMs: Math.round(firstMs), ms: Math.round(median), rssMb: Math.round(rssMb) }));
connection.close();
process.exit();
