/** The runs of the reconciler's CronJob, as their logs show them. */
import type { RealStage } from "./stage.ts";
import { RECONCILER } from "./installation.ts";

interface Line {
  readonly ts: string;
  readonly level: string;
  readonly msg: string;
}

interface Run {
  readonly pod: string;
  readonly lines: readonly Line[];
  /** Milliseconds since the epoch. */
  readonly firstTick: number;
  readonly lastTick: number;
}

/** The runs that have ticked and whose pods are still there, in the order of their first ticks. */
export async function readRuns({ kubectl }: RealStage): Promise<Run[]> {
  const text = await kubectl(["logs", "--selector", RECONCILER, "--tail=-1", "--prefix"]);
  const lines = new Map<string, Line[]>();
  for (const [, pod = "", json = ""] of text.matchAll(/^\[pod\/(\S+)\/\S+\] (\{.*\})$/gm))
    lines.set(pod, [...(lines.get(pod) ?? []), JSON.parse(json) as Line]);
  const runs = [...lines].flatMap(([pod, all]) => {
    const ticks = all.flatMap(({ ts, msg }) => (msg === "tick" ? [Date.parse(ts)] : []));
    const [firstTick] = ticks;
    const lastTick = ticks.at(-1);
    return firstTick === undefined || lastTick === undefined ? [] : [{ pod, lines: all, firstTick, lastTick }];
  });
  return runs.toSorted((a, b) => a.firstTick - b.firstTick);
}
