/**
 * A whole fleet on the real control plane of KUBECONFIG: ticks, resyncs, rollouts, evictions, commands and the status
 * page; each in time, calls, bytes, our memory and the API server's CPU.
 *
 *   test/plane/up; kill $(cat $RUN/kube-controller-manager.pid) $(cat $RUN/kubelet.pid)
 *   FLEET_GROUPS=100 FLEET_PODS=10000 FLEET_MINUTES=20 npm run bench -- fleet
 *   GOGC=100 ETCD_FLAGS=--quota-backend-bytes=8589934592 test/plane/up; kill ...
 *   FLEET_NAMESPACES=50 FLEET_ETCD=http://127.0.0.1:2379 npm run bench -- fleet      100,000 pods, most of them put into etcd
 *   BENCH_BEFORE=/another/checkout FLEET_GROUPS=... FLEET_PODS=... npm run bench -- fleet      ticks of that one beside ours
 *
 * Once begun it goes on where it ended: what exists is not made again. `test/plane/down` removes all.
 */
import { join } from "node:path";
import { bundle } from "../../infra/build.ts";
import { connectAdmin } from "../cluster/stage/client.ts";
import { watchApiServer } from "./api-server.ts";
import { type FleetStage, measureCommands, measureEvictions, measurePage } from "./fleet-parts.ts";
import { createFleet, type FleetSize, namespaceOf, writeZoneStatus, zonesOf } from "./fleet-objects.ts";
import { measure } from "./process.ts";
import { type Bench, median, type Row } from "./row.ts";
import type { TickFigures } from "./tick-process.ts";

const ROUNDS = Number(process.env["BENCH_ROUNDS"] ?? 3);
/** Ticks of one process beside the first two. */
const TICKS = 2;
const SEVERAL = 50;

interface Cost extends TickFigures {
  /** A tick. */
  readonly serverMs: number;
}

/** One program that ticks. */
interface Build {
  readonly name: string;
  readonly program: string;
}

export const benchFleet: Bench = async (environment) => {
  const {
    KUBECONFIG: kubeconfig,
    FLEET_GROUPS = "1000",
    FLEET_PODS = "100000",
    FLEET_MINUTES = "60",
    FLEET_NAMESPACES = "1",
    FLEET_ETCD: etcd,
  } = process.env;
  if (!kubeconfig) {
    console.log("KUBECONFIG is not set: the fleet on a real control plane is left out.");
    return [];
  }
  const size: FleetSize = {
    groups: Number(FLEET_GROUPS),
    namespaces: Number(FLEET_NAMESPACES),
    replicas: Math.max(1, Math.round(Number(FLEET_PODS) / Number(FLEET_GROUPS) / 3)),
  };
  const builds = await buildTicks(environment);
  const admin = await connectAdmin(kubeconfig);
  const server = await watchApiServer(kubeconfig);
  try {
    const startedAt = performance.now();
    const { groups, ended } = await createFleet(admin, size, { minutes: Number(FLEET_MINUTES), etcd });
    const seconds = (performance.now() - startedAt) / 1000;
    const made = { ...size, groups };
    const name = `${groups.toLocaleString("en")} groups of 3 x ${size.replicas} pods on a real control plane`;
    const place = `${(groups * 3 * size.replicas).toLocaleString("en")} pods${size.namespaces > 1 ? ` in ${size.namespaces} namespaces` : ""}: API server ${server.residentMb().toFixed(0)} MB, made in ${seconds.toFixed(0)} s`;
    const stage = { ...environment, admin, server, kubeconfig, size: made, whole: size };
    return [
      {
        what: name,
        figure: ended === "" ? place : `${place}; the rest of ${FLEET_GROUPS} groups was not made: ${ended}`,
      },
      ...(await measureTicks(stage, builds)),
      ...(await measureEvictions(stage)),
      ...(await measureCommands(stage)),
      ...(await measurePage(stage)),
    ];
  } finally {
    server.close();
    admin.close();
  }
};

async function buildTicks({ root, scratch }: { readonly root: string; readonly scratch: string }): Promise<Build[]> {
  const roots = { "": root, ...(process.env["BENCH_BEFORE"] && { ", before": process.env["BENCH_BEFORE"] }) };
  const builds: Build[] = [];
  for (const [name, from] of Object.entries(roots)) {
    const program = join(scratch, `ticks-${builds.length}`);
    await bundle({ "tick-process": "test/bench/tick-process.ts" }, from, program);
    builds.push({ name, program: join(program, "tick-process.js") });
  }
  return builds;
}

async function measureTicks(stage: FleetStage, builds: readonly Build[]): Promise<Row[]> {
  const { admin, size } = stage;
  const rows = [
    ...(await alternate("a settled tick", stage, builds)),
    ...(await alternate("a resync of every pod in one tick", stage, builds, "all")),
  ];
  for (const count of [1, Math.min(SEVERAL, size.groups)]) {
    const groups = Array.from({ length: count }, (_, i) => `g${size.groups - 1 - i}`);
    const zones = groups.flatMap((group) =>
      zonesOf(group).map((name) => ({ namespace: namespaceOf(group, stage.whole), name })),
    );
    const write = async (isOutdated: boolean): Promise<void> => {
      for (const zone of zones) await writeZoneStatus(admin, zone, { replicas: size.replicas, isOutdated });
    };
    await write(true);
    rows.push(
      ...(await alternate(
        `a tick that decides about ${count} rolling ${count === 1 ? "group" : "groups"}`,
        stage,
        builds,
      )),
    );
    await write(false);
  }
  return rows;
}

async function alternate(what: string, stage: FleetStage, builds: readonly Build[], resync = ""): Promise<Row[]> {
  const costs = builds.map((): Cost[] => []);
  const namespace = stage.whole.namespaces > 1 ? "" : "default";
  const env = { KUBECONFIG: stage.kubeconfig, NAMESPACE: namespace, RESYNC: resync, TICKS: String(TICKS) };
  for (let round = 0; round < ROUNDS; round++)
    for (const [i, { program }] of builds.entries()) {
      const { result, serverMs } = await stage.server.measure(() => measure<TickFigures>(program, [], env));
      costs[i]?.push({ ...result, serverMs: serverMs / (TICKS + 2) });
    }
  return builds.map(({ name }, i) => ({
    what: `fleet: ${what}${name}`,
    figure: show(costs[i] ?? [], costs.at(-1) ?? []),
  }));
}

/** Medians; the API server's CPU also relative to that of the build before, in the same rounds. */
function show(costs: readonly Cost[], before: readonly Cost[]): string {
  const of = (pick: (cost: Cost) => number): number => median(costs.map(pick));
  const bytes = of((cost) => cost.bytes);
  const ratio = median(costs.map(({ serverMs }, round) => serverMs / (before[round]?.serverMs ?? Number.NaN)));
  const size = bytes < 1e6 ? `${(bytes / 1e3).toFixed(0)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
  const times = `${of(({ ms }) => ms).toFixed(0)} ms (first ${of(({ firstMs }) => firstMs).toFixed(0)} ms)`;
  const server = `API server ${of(({ serverMs }) => serverMs).toFixed(0)} ms of CPU`;
  const compared = before === costs ? server : `${server} (${ratio.toFixed(2)} times that before)`;
  return `${of(({ calls }) => calls)} calls, ${size}, ${times}, peak ${of(({ peakMb }) => peakMb).toFixed(0)} MB; ${compared}`;
}
