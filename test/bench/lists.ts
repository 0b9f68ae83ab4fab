/**
 * Lists of 15,000 pods from the cluster of KUBECONFIG, by the objects a page, in alternating rounds: what they cost its
 * API server and us.
 */
import { join } from "node:path";
import { bundle } from "../../infra/build.ts";
import { visitEach } from "../../infra/slots.ts";
import { type Admin, connectAdmin, remove } from "../cluster/stage/client.ts";
import { type ApiServer, watchApiServer } from "./api-server.ts";
import type { ListFigures } from "./client-figures.ts";
import { ensure } from "./fleet-objects.ts";
import { podSpec } from "./pod-list.ts";
import { measure } from "./process.ts";
import { type Bench, median } from "./row.ts";

const PODS = Number(process.env["PODS"] ?? 15_000);
const ROUNDS = 5;
/** Objects a page; 0 for all in one. */
const SIZES = [100, 500, 2500, 0];
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
  const server = await watchApiServer(kubeconfig);
  try {
    await fill(admin);
    const costs = new Map<number, Cost[]>(SIZES.map((size) => [size, []]));
    for (let round = 0; round < ROUNDS; round++)
      for (const size of SIZES) costs.get(size)?.push(await list(server, join(scratch, "client-plain.js"), size));
    return SIZES.map((size) => ({
      what: `list of ${PODS.toLocaleString("en")} pods of a real control plane, protobuf, ${size === 0 ? "in one" : `pages of ${size}`}`,
      figure: show(costs.get(size) ?? [], costs.get(SIZES[0] ?? 0) ?? []),
    }));
  } finally {
    await remove(admin, `/api/v1/namespaces/${NAMESPACE}/pods?gracePeriodSeconds=0`);
    await remove(admin, `/api/v1/namespaces/${NAMESPACE}`);
    server.close();
    admin.close();
  }
};

/** Pods that no scheduler takes, so that nothing writes to them. */
async function fill(admin: Admin): Promise<void> {
  await ensure(admin, "/api/v1/namespaces", { metadata: { name: NAMESPACE } });
  await ensure(admin, `/api/v1/namespaces/${NAMESPACE}/serviceaccounts`, { metadata: { name: "ingester" } });
  const ordinals = Array.from({ length: PODS }, (_, i) => i);
  await visitEach(ordinals, { atOnce: AT_ONCE }, async (ordinal) => {
    const labels = { name: "ingester-zone-a", "rollout-group": "ingester" };
    const spec = { ...podSpec(ordinal), schedulerName: "nobody" };
    const metadata = { name: `ingester-zone-a-${ordinal}`, labels };
    await ensure(admin, `/api/v1/namespaces/${NAMESPACE}/pods`, { metadata, spec });
  });
}

async function list(server: ApiServer, program: string, size: number): Promise<Cost> {
  const args = [process.env["KUBECONFIG"] ?? "", String(size), "protobuf"];
  const { result, serverMs } = await server.measure(() => measure<ListFigures>(program, args));
  if (result.seen !== PODS) throw new Error(`a list had ${result.seen} pods`);
  return { ...result, serverMs };
}

/** Medians; in brackets the server's CPU relative to that of the first size in the same round. */
function show(costs: readonly Cost[], first: readonly Cost[]): string {
  const of = (pick: (cost: Cost) => number): string => median(costs.map(pick)).toFixed(0);
  const ratio = median(costs.map(({ serverMs }, round) => serverMs / (first[round]?.serverMs ?? Number.NaN)));
  const server = `API server ${of(({ serverMs }) => serverMs)} ms of CPU (${ratio.toFixed(2)})`;
  return `${server}; list ${of(({ listMs }) => listMs)} ms, peak ${of(({ peakMb }) => peakMb)} MB`;
}
