/**
 * All that a user decides by, beside the original, as ORIGINAL names it, on one machine: settled cost and rollouts, then
 * the webhook servers in alternating rounds: start, no-downscale, with a bare server of Node.js as the minimum, evictions
 * under budgets of 30 and 900 pods, and memory. KUBECONFIG names a real control plane that `test/plane/up` has started.
 * Its controllers and kubelets are ended after the rollouts, as the pods of the budgets are only written: take it down
 * afterwards.
 *
 *   ORIGINAL=/path/to/rollout-operator npm run bench -- compare
 */
import { existsSync, readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { connectAdmin } from "../cluster/stage/client.ts";
import { PATH } from "./eviction-setup.ts";
import { createGroup, prepare, writePodStatus, zonesOf } from "./plane-groups.ts";
import { EVICTION_PATH, readOriginal } from "./original.ts";
import { readCpuMs, readResidentMb } from "./peak.ts";
import { NODE_ARGS, SERVER_ARGS } from "./process.ts";
import { evictionRequest, type LoadFigures, reviewRequest, sendLoad } from "./review-load.ts";
import { prepareServers, type Program, type ReviewServer, type StartServer } from "./review-server.ts";
import { benchRollout } from "./rollout.ts";
import { type Bench, type BenchEnvironment, median, type Row } from "./row.ts";
import { benchSettled } from "./settled.ts";

const ROUNDS = Number(process.env["BENCH_ROUNDS"] ?? 5);
const SECONDS = 4;
const CONNECTIONS = 8;
/** Of each size, in each round: seconds of load, as a shorter round is decided by what the other cores do meanwhile. */
const REQUESTS = 20_000;
/** Until a server has given back what its start needed. */
const SETTLE_MS = 3000;
/** Reviews of 3 and of 15 kB, by their variables. */
const SIZES = [
  { kb: 3, request: reviewRequest(3) },
  { kb: 15, request: reviewRequest(33) },
];
/** Pods of the three zones of a group. */
const PODS = [30, 900];
const NAMES = ["ours", "original"] as const;
/** Of the servers, in the order of a row. The last one is the minimum for Node.js, where it can answer. */
const TITLES = [...NAMES, "bare Node.js"];
const BARE = join(import.meta.dirname, "bare-server.js");

interface Rival extends ReviewServer {
  readonly name: (typeof NAMES)[number];
  /** Of its eviction webhook. */
  readonly path: string;
}

type Started = Parameters<StartServer>[0];

/** A round of one server. */
type Play = (rival: ReviewServer) => Promise<LoadFigures>;

export const benchCompare: Bench = async (environment) => {
  const original = readOriginal(process.env);
  const { KUBECONFIG: kubeconfig } = process.env;
  if (!kubeconfig) throw new Error("KUBECONFIG is not set: it names the control plane that both servers ask");
  const rows = [...(await benchSettled(environment)), ...(await benchRollout(environment))];
  endControllers(dirname(kubeconfig));
  return [...rows, ...(await benchServers(environment, kubeconfig, original))];
};

/** Ends them by the pid files of the plane. */
function endControllers(plane: string): void {
  for (const name of ["kube-controller-manager", "kubelet"]) {
    const file = join(plane, `${name}.pid`);
    if (existsSync(file)) process.kill(Number(readFileSync(file, "utf8")), "SIGTERM");
  }
}

/**
 * At each size in turn, with servers that have seen no other: the original keeps all pods of the namespace in memory,
 * and goes through them for an answer.
 */
async function benchServers(environment: BenchEnvironment, kubeconfig: string, original: Program): Promise<Row[]> {
  const startServer = await prepareServers(environment.scratch, await readFile(kubeconfig, "utf8"));
  const args = [...NODE_ARGS, ...SERVER_ARGS, join(environment.dist, "functions/serve.js")];
  const first = SIZES[0]?.request ?? "";
  const rows: Row[] = [];
  for (const pods of PODS) {
    await createPods(kubeconfig, pods);
    const isFirst = pods === PODS[0];
    if (isFirst) rows.push(await compareStarts({ ours: args, original }, (program) => startServer(program, first)));
    const servers: ReviewServer[] = [];
    const start = async (program: Started): Promise<ReviewServer> => {
      const server = await startServer(program, first);
      servers.push(server);
      return server;
    };
    try {
      const bare = await start([...NODE_ARGS, ...SERVER_ARGS, BARE]);
      const rivals: Rival[] = [
        { name: "ours", path: PATH, ...(await start(args)) },
        { name: "original", path: EVICTION_PATH, ...(await start(original)) },
      ];
      await sleep(SETTLE_MS);
      rows.push(memoryRow(`idle, ${pods} pods a group`, [...rivals, bare]));
      if (isFirst) rows.push(...(await compareReviews(rivals, bare)));
      rows.push(...(await compareEvictions(rivals, pods)));
    } finally {
      await Promise.all(servers.map(({ end }) => end()));
    }
  }
  return rows;
}

/** Milliseconds from a server's start to its first answer, in turn; ours with the image's compile cache. */
async function compareStarts(
  programs: Readonly<Record<(typeof NAMES)[number], Started>>,
  start: (program: Started) => Promise<ReviewServer>,
): Promise<Row> {
  const times = { ours: [] as number[], original: [] as number[] };
  await (await start(programs.ours)).end();
  for (let round = 0; round < ROUNDS; round++)
    for (const name of NAMES) {
      const startedAt = performance.now();
      const server = await start(programs[name]);
      times[name].push(performance.now() - startedAt);
      await server.end();
    }
  const figures = NAMES.map((name) => `${name} ${median(times[name]).toFixed(0)} ms`);
  return { what: "compared: start to the first answer of a webhook", figure: figures.join(", ") };
}

/** Groups of their own for each server: what one reserves does not wake the other. */
async function createPods(kubeconfig: string, pods: number): Promise<void> {
  const admin = await connectAdmin(kubeconfig);
  try {
    await prepare(admin);
    for (const name of NAMES)
      for (const state of ["free", "blocked"]) {
        const group = groupOf(name, state, pods);
        await createGroup(admin, group, pods / 3);
        if (state === "blocked") await writePodStatus(admin, `${zonesOf(group).at(-1)}-${pods / 3 - 1}`, false);
      }
  } finally {
    admin.close();
  }
}

const groupOf = (name: string, state: string, pods: number): string => `${name}-${state}-${pods}`;

async function compareReviews(rivals: readonly Rival[], bare: ReviewServer): Promise<Row[]> {
  const all = [...rivals, bare];
  const rows: Row[] = [];
  for (const { kb, request } of SIZES) {
    const play: Play = ({ target }) =>
      sendLoad(target, { requests: [request], count: REQUESTS, connections: CONNECTIONS });
    rows.push(await alternate(`no-downscale, reviews of ${kb} kB`, all, play));
  }
  return [...rows, memoryRow("after no-downscale", all)];
}

async function compareEvictions(rivals: readonly Rival[], pods: number): Promise<Row[]> {
  const rows: Row[] = [];
  for (const state of ["free", "blocked"]) {
    const what = `evictions under a budget of ${pods} pods, ${state === "free" ? "allowed" : "denied"}`;
    rows.push(await alternate(what, rivals, (rival) => evict(rival, { state, pods })));
  }
  return [...rows, memoryRow(`after evictions at ${pods} pods`, rivals)];
}

async function evict(
  { name, path, target }: Rival,
  { state, pods }: { readonly state: string; readonly pods: number },
): Promise<LoadFigures> {
  const [zone = ""] = zonesOf(groupOf(name, state, pods));
  const requests = Array.from({ length: pods / 3 }, (_, ordinal) => evictionRequest(path, `${zone}-${ordinal}`));
  const load = { requests, seconds: SECONDS, connections: CONNECTIONS };
  const figures = await sendLoad(target, load);
  const { allowed, answers } = figures;
  if (allowed !== (state === "free" ? answers : 0))
    throw new Error(`${name} allowed ${allowed} of ${answers} evictions of ${zone}`);
  return figures;
}

/**
 * A round to warm up, then rounds that each begin with another server. On few cores the load takes a part of them, and a
 * server with more threads gets more of what is left: so the CPU time of an answer is measured, too.
 */
async function alternate<R extends ReviewServer>(
  what: string,
  rivals: readonly R[],
  play: (rival: R) => Promise<LoadFigures>,
): Promise<Row> {
  const rates = rivals.map((): number[] => []);
  const costs = rivals.map((): number[] => []);
  for (const rival of rivals) await play(rival);
  for (let round = 0; round < ROUNDS; round++)
    for (let turn = 0; turn < rivals.length; turn++) {
      const at = (turn + round) % rivals.length;
      const rival = rivals[at];
      if (!rival) continue;
      const before = readCpuMs(rival.pid);
      const { perSecond, answers } = await play(rival);
      rates[at]?.push(perSecond);
      costs[at]?.push(((readCpuMs(rival.pid) - before) / answers) * 1000);
    }
  const [ours = [], original = []] = rates;
  const ratios = ours.map((rate, round) => rate / (original[round] ?? Number.NaN)).toSorted((a, b) => a - b);
  const range = `${ratios[0]?.toFixed(2)} to ${ratios.at(-1)?.toFixed(2)}`;
  const figures = rates.map(
    (own, at) => `${TITLES[at]} ${median(own).toFixed(0)}/s at ${median(costs[at] ?? []).toFixed(0)} µs of CPU each`,
  );
  return {
    what: `compared: ${what}`,
    figure: `${figures.join(", ")}: ${median(ratios).toFixed(2)} times the original's rate (${range})`,
  };
}

function memoryRow(when: string, servers: readonly ReviewServer[]): Row {
  const sizes = servers.map(({ pid }) => readResidentMb(pid));
  const [ours = Number.NaN, original = Number.NaN] = sizes;
  const figures = sizes.map((mb, at) => `${TITLES[at]} ${mb.toFixed(0)} MB`);
  return {
    what: `compared: memory, ${when}`,
    figure: `${figures.join(", ")}: ${(ours / original).toFixed(2)} times the original's`,
  };
}
