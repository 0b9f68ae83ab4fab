/**
 * What a start costs beside other builds, in alternating rounds, so that a noisy machine disturbs all of them alike:
 *
 *   BENCH_BEFORE=/one/dist,/other/dist npm run bench -- starts
 */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { readCpuMs, readResidentMb } from "./peak.ts";
import { MALLOC_ENV, NODE_ARGS, SERVER_ARGS } from "./process.ts";
import { reviewRequest } from "./review-load.ts";
import { prepareServers, type StartServer } from "./review-server.ts";
import { type Bench, median, type Row } from "./row.ts";
import { timeStart } from "./start.ts";

const ROUNDS = Number(process.env["BENCH_ROUNDS"] ?? 15);
/** Milliseconds until a server has given back what its start needed. */
const SETTLE_MS = 1000;

/** Of one start of each process, by what is measured. */
type Figures = ReadonlyMap<string, number>;

export const benchStarts: Bench = async ({ dist, scratch }) => {
  const others = (process.env["BENCH_BEFORE"] ?? "").split(",").filter((one) => one !== "");
  const builds = [dist, ...others];
  const servers: StartServer[] = [];
  for (const i of builds.keys()) {
    const own = join(scratch, `starts-${i}`);
    await mkdir(own);
    servers.push(await prepareServers(own));
  }
  const startOne = (at: number): Promise<Figures> =>
    startBoth(builds[at] ?? "", join(scratch, `starts-${at}`), servers[at] as StartServer);
  for (const at of builds.keys()) await startOne(at); // fills the compile caches
  const rounds: Figures[][] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const figures: Figures[] = [];
    // Each round begins with another build.
    for (let turn = 0; turn < builds.length; turn++) {
      const at = (turn + round) % builds.length;
      figures[at] = await startOne(at);
    }
    rounds.push(figures);
  }
  return builds.flatMap((build, at) => rowsOf(rounds, at, at === 0 ? "this build" : `the build in ${build}`));
};

async function startBoth(dist: string, folder: string, startServer: StartServer): Promise<Figures> {
  const env = { ...MALLOC_ENV, NODE_COMPILE_CACHE: join(folder, "compile-cache") };
  const reconciler = await timeStart([join(dist, "reconciler/main.js")], join(folder, "kubeconfig"), env);
  const begin = performance.now();
  const server = await startServer([...NODE_ARGS, ...SERVER_ARGS, join(dist, "functions/serve.js")], reviewRequest(3));
  const [ms, cpuMs] = [performance.now() - begin, readCpuMs(server.pid)];
  await sleep(SETTLE_MS);
  const residentMb = readResidentMb(server.pid);
  await server.end();
  return new Map([
    ["reconciler, start to first API call, ms", reconciler.ms],
    ["reconciler, CPU until then, ms", reconciler.cpuMs],
    ["reconciler, resident then, MB", reconciler.residentMb],
    ["webhook server, start to first TLS answer, ms", ms],
    ["webhook server, CPU until then, ms", cpuMs],
    ["webhook server, resident idle, MB", residentMb],
  ]);
}

/** The medians, and in brackets those of the ratios to this build in the same round. */
function rowsOf(rounds: readonly (readonly Figures[])[], at: number, name: string): Row[] {
  const of = (figures: Figures | undefined, what: string): number => figures?.get(what) ?? Number.NaN;
  return [...(rounds[0]?.[0]?.keys() ?? [])].map((what) => {
    const values = rounds.map((round) => of(round[at], what));
    const ratios = rounds.map((round) => of(round[at], what) / of(round[0], what));
    return { what: `${what}, ${name}`, figure: `${median(values).toFixed(1)} (${median(ratios).toFixed(3)})` };
  });
}
