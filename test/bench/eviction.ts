/**
 * Evictions through the shipped webhook server, over TLS, on the embedded cluster with pods of 8 kB: denied
 * ones, as waiting drainers cause them, and allowed ones. For comparison, the duration of one list of the
 * pods.
 */
import type { BenchGroup } from "./eviction-cluster.ts";
import { CONNECTIONS, type Setup, withSetup } from "./eviction-setup.ts";
import type { LoadFigures } from "./review-load.ts";
import { type Aim, atMost, type Bench, median, type Row } from "./row.ts";

const SECONDS = 8;
const WARM_UP_SECONDS = 4;
const SMALLEST = 3;
const LARGEST = 500;
/** 1.3 times what upstream holds after such load. */
const MAX_MB = 85;
/** Five times upstream's rate on such a machine. */
const LEAST_PER_SECOND = 730;
/** Pods per zone: 9, 300 and 1,500 pods in total. */
const SIZES = [SMALLEST, 100, LARGEST];

export const benchEvictions: Bench = async (environment) => {
  const rows: Row[] = [];
  for (const replicas of SIZES)
    rows.push(
      ...(await withSetup(environment, [group("free", replicas), group("blocked", replicas)], (setup) =>
        measure(setup, replicas),
      )),
    );
  rows.push(...(await withSetup(environment, [group("small", SMALLEST), group("large", LARGEST)], measureTwo)));
  return rows;

  function group(name: string, replicas: number): BenchGroup {
    return { name, replicas, blocked: name === "blocked" };
  }

  async function measure(setup: Setup, replicas: number): Promise<Row[]> {
    const where = `${(3 * replicas).toLocaleString("en")} pods`;
    const idleMb = await setup.residentMb();
    const rows: Row[] = [];
    for (const [name, shouldAllow] of [
      ["blocked", false],
      ["free", true],
    ] as const) {
      await setup.sendLoad(name, WARM_UP_SECONDS);
      const lists = await timeLists(setup, name);
      await setup.figures();
      const load = await setup.sendLoad(name, SECONDS);
      const { calls, bytes, listsAtOnce } = await setup.figures();
      const [json, protobuf] = (await timeLists(setup, name)).map((times, i) =>
        median([...times, ...(lists[i] ?? [])]),
      );
      const plain = [
        compare(json, "in JSON", load),
        compare(protobuf, "in protobuf, as the server reads it", load),
      ].join(", ");
      if (load.allowed !== (shouldAllow ? load.answers : 0))
        throw new Error(`${load.allowed} of ${load.answers} evictions were allowed`);
      const each = `${(calls / load.answers).toFixed(1)} calls and ${(bytes / load.answers / 1000).toFixed(1)} kB an answer`;
      const figure = `${rate(load)}; ${each}; at most ${listsAtOnce} lists at once; a plain list beside: ${plain}`;
      const shared = sharedAim(load, json ?? Number.NaN, listsAtOnce, replicas);
      const aim = shouldAllow ? (allowedAim(load, replicas) ?? shared) : shared;
      rows.push({
        what: `evictions, ${where}: ${shouldAllow ? "allowed" : "denied"}, on ${CONNECTIONS} connections`,
        figure,
        ...(aim && { aim }),
      });
    }
    const residentMb = await setup.residentMb();
    rows.push({
      what: `evictions, ${where}: webhook server, resident`,
      figure: `${idleMb.toFixed(0)} MB before, ${residentMb.toFixed(0)} MB after`,
      ...(replicas === LARGEST && { aim: atMost(MAX_MB, " MB after", residentMb) }),
    });
    return rows;
  }

  async function measureTwo(setup: Setup): Promise<Row[]> {
    await setup.sendLoad("small", WARM_UP_SECONDS);
    await setup.sendLoad("large", WARM_UP_SECONDS);
    const alone = await setup.sendLoad("small", SECONDS);
    const large = setup.sendLoad("large", SECONDS);
    const small = await setup.sendLoad("small", SECONDS);
    await large;
    return [
      { what: "evictions under a budget of 9 pods, alone", figure: rate(alone) },
      {
        what: "the same, beside evictions under another budget of 1,500 pods",
        figure: `${rate(small)}; those of the other: ${rate(await large)}`,
      },
    ];
  }
};

/** Durations in milliseconds of lists in JSON and in protobuf, in turn. */
async function timeLists(setup: Setup, name: string): Promise<readonly (readonly number[])[]> {
  return [await setup.listMs(name, "json"), await setup.listMs(name, "protobuf")];
}

const compare = (listMs = Number.NaN, form: string, { p50 }: LoadFigures): string =>
  `${listMs.toFixed(1)} ms ${form} (p50 is ${(p50 / listMs).toFixed(1)} times that)`;

const rate = ({ perSecond, p50, p99 }: LoadFigures): string =>
  `${perSecond.toFixed(0)}/s, p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms`;

function allowedAim({ perSecond }: LoadFigures, replicas: number): Aim | undefined {
  if (replicas !== SMALLEST) return undefined;
  return { text: `at least ${LEAST_PER_SECOND}/s`, met: perSecond >= LEAST_PER_SECOND };
}

/** Requests share their lists. */
function sharedAim({ p50 }: LoadFigures, listMs: number, listsAtOnce: number, replicas: number): Aim | undefined {
  if (replicas !== LARGEST) return undefined;
  return {
    text: "p50 at most 1.5 times the list in JSON, at most 2 lists at once",
    met: p50 <= 1.5 * listMs && listsAtOnce <= 2,
  };
}
