/** Large groups: what blocks the process meanwhile, as the ratio of two measurements in one run. */
import { decideScaling } from "../../reconciler/scaling/decide-scaling.ts";
import { group } from "../reconciler/builders.ts";
import { atMost, median, type Bench } from "./row.ts";

const ZONES = 1000;
const TIMES = 5;

/** The median of the milliseconds that `work` blocks. */
function block(work: () => void): number {
  const figures = Array.from({ length: TIMES }, () => {
    const startedAt = performance.now();
    work();
    return performance.now() - startedAt;
  });
  return median(figures);
}

/** Milliseconds of a decision about so many zones, each of which follows the next, the last one the first. */
function decideCycle(count: number): number {
  const { zones } = group(
    ...Array.from({ length: count }, (_, i) => ({
      name: `z${i}`,
      replicas: 1,
      annotations: { "grafana.com/rollout-downscale-leader": `z${(i + 1) % count}` },
    })),
  );
  return block(
    () => void decideScaling({ zones: [...zones], tracked: new Map(), now: 0, facts: new Map(), clusterDomain: "x" }),
  );
}

export const benchLarge: Bench = async () => {
  const [half, whole] = [decideCycle(ZONES / 2), decideCycle(ZONES)];
  const times = whole / half;
  return [
    {
      what: `a decision about ${ZONES} zones in a cycle of leaders`,
      figure: `${whole.toFixed(1)} ms, ${times.toFixed(1)} times that about ${ZONES / 2}`,
      aim: atMost(3, " times", times),
    },
  ];
};
