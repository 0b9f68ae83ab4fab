/**
 * The duration of rollouts on the cluster of KUBECONFIG with default settings, compared with the minimum: a loop that
 * deletes the same pods, as many at once, and waits for them to be recreated and ready. With ORIGINAL, one of the
 * original's as well.
 */
import { readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { openStage, type Stage } from "../cluster/stage/stage.ts";
import type { ZoneOptions } from "../cluster/stage/zones.ts";
import { startDaemon } from "./original.ts";
import { installDefinitions } from "./plane-groups.ts";
import { end } from "./process.ts";
import { atMost, type Bench, median, type Row } from "./row.ts";

const ROUNDS = Number(process.env["BENCH_ROUNDS"] ?? 3);
const AIM = 1.12;
const sim = { "sim/ready-after-ms": "300", "sim/exit-after-ms": "100" };

interface Shape {
  readonly group: string;
  readonly zones: number;
  readonly replicas: number;
  /** Pods of a zone that may be unavailable at once. */
  readonly atOnce: number;
}

const SHAPES: readonly Shape[] = [
  { group: "cache", zones: 3, replicas: 3, atOnce: 1 },
  { group: "store", zones: 5, replicas: 4, atOnce: 2 },
];

/** Of the original: its informers are full. */
const START_MS = 5000;
/** Milliseconds for a rollout of the original: it waits for its interval after each pod. */
const PATIENCE_MS = 5 * 60_000;

export const benchRollout: Bench = async ({ scratch }) => {
  if (!process.env["KUBECONFIG"]) {
    console.log("KUBECONFIG is not set: the rollouts on a real control plane are left out.");
    return [];
  }
  const rows: Row[] = [];
  for (const shape of SHAPES) rows.push(...(await benchShape(shape, scratch)));
  return rows;
};

/** The rollout and its minimum in turn. */
async function benchShape(shape: Shape, scratch: string): Promise<Row[]> {
  const zones = zonesOf(shape);
  const stage = await openStage();
  try {
    await stage.create(zones);
    const floors: number[] = [];
    const rollouts: number[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      floors.push(await measureFloor(stage, zones, shape));
      const reconciler = stage.start();
      await reconciler.untilOutput(/"msg":"tick"/);
      rollouts.push(await measureRollout(stage, zones, `app:${round + 2}`));
      await reconciler.end();
    }
    const ratio = median(rollouts) / median(floors);
    const ratios = rollouts.map((ms, round) => (ms / (floors[round] ?? Number.NaN)).toFixed(2)).join(", ");
    const what = `rollout of ${shape.zones} x ${shape.replicas} pods, ${shape.atOnce} at once, on a real control plane`;
    const original = process.env["ORIGINAL"] ? await measureOriginal(stage, zones, scratch) : undefined;
    return [
      ...(original === undefined ? [] : [{ what: `${what}, by the original`, figure: show([original]) }]),
      { what: `${what}, minimum: a plain loop over the same pods`, figure: show(floors) },
      { what: `${what}, by Zonewise, default settings`, figure: show(rollouts) },
      {
        what: `${what}, relative to the minimum`,
        figure: `${ratio.toFixed(2)} (${ratios})`,
        aim: atMost(AIM, "", ratio),
      },
    ];
  } finally {
    await stage.close();
  }
}

function zonesOf({ group, zones, replicas, atOnce }: Shape): ZoneOptions[] {
  const annotations = { "rollout-max-unavailable": String(atOnce) };
  const names = Array.from({ length: zones }, (_, i) => `${group}-zone-${"abcde"[i]}`);
  return names.map((name) => ({ group, name, replicas, annotations, selectsByGroup: true, sim }));
}

/** Milliseconds of the loop, without a reconciler. */
async function measureFloor(
  { deletePod, timeline }: Stage,
  zones: readonly ZoneOptions[],
  { replicas, atOnce }: Shape,
): Promise<number> {
  const latest = (pod: string) => timeline.entries.findLast((entry) => entry.pod === pod);
  const replace = async (pod: string): Promise<void> => {
    const before = latest(pod)?.uid;
    await deletePod(pod);
    await timeline.until(`${pod} is replaced`, () => latest(pod)?.uid !== before && latest(pod)?.state === "ready");
  };
  const startedAt = performance.now();
  for (const { name } of zones)
    for (let first = 0; first < replicas; first += atOnce)
      await Promise.all(Array.from({ length: atOnce }, (_, i) => replace(`${name}-${first + i}`)));
  return performance.now() - startedAt;
}

/**
 * Milliseconds from the new template until the rollout is recorded as complete; the reconciler is idle at the
 * start.
 */
async function measureRollout(
  { setImage, done }: Stage,
  zones: readonly ZoneOptions[],
  image: string,
): Promise<number> {
  const startedAt = performance.now();
  await setImage(image, zones);
  await done(image, zones, PATIENCE_MS);
  return performance.now() - startedAt;
}

/** Milliseconds of one rollout by the original, which has the rights of KUBECONFIG. */
async function measureOriginal(stage: Stage, zones: readonly ZoneOptions[], scratch: string): Promise<number> {
  const kubeconfig = await readFile(process.env["KUBECONFIG"] ?? "", "utf8");
  await installDefinitions(stage.admin);
  const daemon = await startDaemon({ namespace: stage.namespace, kubeconfig, scratch });
  try {
    await sleep(START_MS);
    return await measureRollout(stage, zones, "app:original");
  } finally {
    await end(daemon);
  }
}

function show(figures: readonly number[]): string {
  const seconds = (ms: number): string => (ms / 1000).toFixed(2);
  return `${seconds(median(figures))} s (${figures.map(seconds).join(", ")})`;
}
