/**
 * Lists of 15,000 pods from the cluster of KUBECONFIG, by the objects a page, in alternating rounds: what they cost its
 * API server and us. The server's CPU is that of its own metric, less what it uses without us.
 */
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { bundle } from "../../infra/build.ts";
import { readText } from "../../infra/http.ts";
import { type Connection, loadConnection } from "../../infra/kubernetes/connection.ts";
import { openExchange } from "../../infra/kubernetes/transport.ts";
import { visitEach } from "../../infra/slots.ts";
import { type Admin, connectAdmin, remove } from "../cluster/stage/client.ts";
import type { ListFigures } from "./client-figures.ts";
import { podSpec } from "./pod-list.ts";
import { measure } from "./process.ts";
import { type Bench, median } from "./row.ts";

const PODS = Number(process.env["PODS"] ?? 15_000);
const ROUNDS = 5;
/** Objects a page; 0 for all in one. */
const SIZES = [100, 500, 1000, 0];
const IDLE_MS = 5000;
const CALL_MS = 60_000;
const AT_ONCE = 32;
const NAMESPACE = "bench";

interface Cost extends ListFigures {
  readonly serverMs: number;
}

export const benchLists: Bench = async ({ root, scratch }) => {
  const { KUBECONFIG: kubeconfig } = process.env;
  if (!kubeconfig) {
    console.log("KUBECONFIG is not set: the lists from a real control plane are left out.");
    return [];
  }
  await bundle({ "client-plain": "test/bench/client-plain.ts" }, root, scratch);
  const admin = await connectAdmin(kubeconfig);
  const connection = await loadConnection({ kubeconfig });
  try {
    await fill(admin);
    const costs = new Map<number, Cost[]>(SIZES.map((size) => [size, []]));
    for (let round = 0; round < ROUNDS; round++)
      for (const size of SIZES) costs.get(size)?.push(await list(connection, join(scratch, "client-plain.js"), size));
    return SIZES.map((size) => ({
      what: `list of ${PODS.toLocaleString("en")} pods of a real control plane, protobuf, ${size === 0 ? "in one" : `pages of ${size}`}`,
      figure: show(costs.get(size) ?? []),
    }));
  } finally {
    await remove(admin, `/api/v1/namespaces/${NAMESPACE}/pods?gracePeriodSeconds=0`);
    await remove(admin, `/api/v1/namespaces/${NAMESPACE}`);
    connection.close();
    admin.close();
  }
};

/** Pods that no scheduler takes, so that nothing writes to them. */
async function fill({ call }: Admin): Promise<void> {
  await call("POST", "/api/v1/namespaces", { metadata: { name: NAMESPACE } });
  await call("POST", `/api/v1/namespaces/${NAMESPACE}/serviceaccounts`, { metadata: { name: "ingester" } });
  const ordinals = Array.from({ length: PODS }, (_, i) => i);
  await visitEach(ordinals, { atOnce: AT_ONCE }, async (ordinal) => {
    const labels = { name: "ingester-zone-a", "rollout-group": "ingester" };
    const spec = { ...podSpec(ordinal), schedulerName: "nobody" };
    const body = { metadata: { name: `ingester-zone-a-${ordinal}`, labels }, spec };
    await call("POST", `/api/v1/namespaces/${NAMESPACE}/pods`, body);
  });
}

async function list(connection: Connection, program: string, size: number): Promise<Cost> {
  const idle = await serverMs(connection);
  await sleep(IDLE_MS);
  const before = await serverMs(connection);
  const startedAt = performance.now();
  const figures = await measure<ListFigures>(program, [process.env["KUBECONFIG"] ?? "", String(size), "protobuf"]);
  const tookMs = performance.now() - startedAt;
  const used = (await serverMs(connection)) - before;
  if (figures.seen !== PODS) throw new Error(`a list had ${figures.seen} pods`);
  return { ...figures, serverMs: used - ((before - idle) * tookMs) / IDLE_MS };
}

/** Milliseconds of CPU since the API server started. */
async function serverMs(connection: Connection): Promise<number> {
  const signal = AbortSignal.timeout(CALL_MS);
  const wire = { method: "GET", path: "/metrics", accept: "text/plain" } as const;
  const text = await readText(await openExchange(connection, wire, { signal, remainingMs: () => CALL_MS }), signal);
  return Number(/^process_cpu_seconds_total (\S+)$/m.exec(text)?.[1]) * 1000;
}

function show(costs: readonly Cost[]): string {
  const of = (pick: (cost: Cost) => number): string => median(costs.map(pick)).toFixed(0);
  return `API server ${of(({ serverMs }) => serverMs)} ms of CPU; list ${of(({ listMs }) => listMs)} ms, peak ${of(({ peakMb }) => peakMb)} MB`;
}
