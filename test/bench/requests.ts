/**
 * What one request costs the webhook server: CPU time and memory, in alternating rounds of variants, so that a noisy
 * machine disturbs all of them alike. Figures of two runs do not compare, the ratios within one do.
 *
 *   npm run bench -- requests                                          this build beside Node's floor
 *   BENCH_BEFORE=/one/dist,/other/dist npm run bench -- requests       and beside other builds
 *   npm run bench -- flags                                             this build with other arguments of Node
 */
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { readCpuMs, readResidentMb } from "./peak.ts";
import { NODE_ARGS, SERVER_ARGS } from "./process.ts";
import { reviewRequest, sendLoad } from "./review-load.ts";
import { prepareServers, type ReviewServer } from "./review-server.ts";
import { type Bench, type BenchEnvironment, median, type Row } from "./row.ts";

const ROUNDS = Number(process.env["BENCH_ROUNDS"] ?? 9);
/** Of each size, in each round. */
const REQUESTS = 3000;
/** Until V8 has compiled what is called often. */
const WARM_UP = 8000;
const CONNECTIONS = 8;
/** Milliseconds until a server has given back what its start needed. */
const SETTLE_MS = 3000;
/** Reviews of 3 and of 15 kB. */
const SIZES = [
  { kb: 3, request: reviewRequest(3) },
  { kb: 15, request: reviewRequest(33) },
];

/** A server to measure: the first is what the others are compared with. */
interface Variant {
  readonly name: string;
  /** Of Node, the script as the last. */
  readonly args: readonly string[];
}

const serverOf = (dist: string): string => join(dist, "functions/serve.js");

export const benchRequests: Bench = async (environment) => {
  const args = [...NODE_ARGS, ...SERVER_ARGS];
  const others = (process.env["BENCH_BEFORE"] ?? "").split(",").filter((dist) => dist !== "");
  return await alternate(environment, [
    { name: "as shipped", args: [...args, serverOf(environment.dist)] },
    { name: "Node's floor: TLS, HTTP and JSON alone", args: [...args, join(import.meta.dirname, "bare-server.js")] },
    ...others.map((dist) => ({ name: `the build in ${dist}`, args: [...args, serverOf(dist)] })),
  ]);
};

/** The size of V8's young generation in MB, and what else is given. */
const FLAG_SETS: readonly { readonly young: number; readonly flags: readonly string[] }[] = [
  { young: 1, flags: ["--optimize-for-size", "--no-maglev"] },
  { young: 1, flags: ["--optimize-for-size"] },
  { young: 1, flags: ["--no-maglev"] },
  ...[1, 2, 4, 8, 16].map((young) => ({ young, flags: [] })),
];

export const benchFlags: Bench = async (environment) => {
  const others = NODE_ARGS.filter((arg) => !arg.startsWith("--max-semi-space-size"));
  const variants = FLAG_SETS.map(({ young, flags }) => ({
    name: [`${young} MB`, ...flags].join(" "),
    args: [...others, `--max-semi-space-size=${young}`, ...flags, serverOf(environment.dist)],
  }));
  const bare = join(import.meta.dirname, "bare-server.js");
  return await alternate(environment, [
    ...variants,
    { name: "Node's floor, 1 MB", args: [...others, "--max-semi-space-size=1", bare] },
    { name: "Node's floor, Node's defaults", args: [bare] },
  ]);
};

/** A row for each variant: the medians over all rounds, each relative to the first variant's. */
async function alternate({ scratch }: BenchEnvironment, variants: readonly Variant[]): Promise<readonly Row[]> {
  const startServer = await prepareServers(scratch);
  const servers: ReviewServer[] = [];
  try {
    for (const { args } of variants) servers.push(await startServer(args, SIZES[0]?.request ?? ""));
    await sleep(SETTLE_MS);
    const idle = servers.map(({ pid }) => readResidentMb(pid));
    for (const server of servers) for (const { request } of SIZES) await measure(server, request, WARM_UP);
    const figures = await playRounds(servers);
    const after = servers.map(({ pid }) => readResidentMb(pid));
    return variants.map(({ name }, i) => {
      const costs = SIZES.map(({ kb }, size) => {
        const us = figures[i]?.[size] ?? [];
        const ratios = us.map((one, round) => one / (figures[0]?.[size]?.[round] ?? Number.NaN));
        return `${kb} kB ${median(us).toFixed(0)} µs (${median(ratios).toFixed(2)})`;
      });
      const memory = `${idle[i]?.toFixed(0)} MB idle, ${after[i]?.toFixed(0)} MB after load`;
      return { what: `CPU of a request, ${name}`, figure: `${costs.join(", ")}; ${memory}` };
    });
  } finally {
    await Promise.all(servers.map(({ end }) => end()));
  }
}

/** Microseconds of CPU a request, by server, size and round. */
async function playRounds(servers: readonly ReviewServer[]): Promise<readonly (readonly number[][])[]> {
  const figures = servers.map(() => SIZES.map((): number[] => []));
  for (let round = 0; round < ROUNDS; round++)
    for (const [size, { request }] of SIZES.entries())
      for (let turn = 0; turn < servers.length; turn++) {
        // Each round begins with another server.
        const at = (turn + round) % servers.length;
        const server = servers[at];
        if (server) figures[at]?.[size]?.push(await measure(server, request, REQUESTS));
      }
  return figures;
}

async function measure({ pid, target }: ReviewServer, request: string, count: number): Promise<number> {
  const before = readCpuMs(pid);
  await sendLoad(target, { request, count, connections: CONNECTIONS });
  return ((readCpuMs(pid) - before) * 1000) / count;
}
