/** Large groups and many budgets: what blocks the process meanwhile, as the ratio of two measurements in one run. */
import { compilePartition, createPartitionCache } from "../../reconciler/budget/partition.ts";
import { BUDGET_KIND, parseBudget } from "../../reconciler/budget/zpdb.ts";
import { decideScaling } from "../../reconciler/scaling/decide-scaling.ts";
import { group } from "../reconciler/builders.ts";
import { atMost, median, type Bench } from "./row.ts";

const ZONES = 1000;
const BUDGETS = 300;
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

/** Milliseconds in which the budgets of a list are understood, by this compiler. */
function readBudgets(compile: typeof compilePartition): number {
  const budgets = Array.from({ length: BUDGETS }, (_, i) => ({
    kind: BUDGET_KIND,
    metadata: { name: `b${i}` },
    spec: {
      selector: { matchLabels: { tenant: `t${i}` } },
      podNamePartitionRegex: `tenant-${i}-[a-z\\-]+-zone-[a-z]-([0-9]{1,9})`,
    },
  }));
  return block(() => {
    for (const budget of budgets) parseBudget(budget, compile);
  });
}

export const benchLarge: Bench = async () => {
  const [half, whole] = [decideCycle(ZONES / 2), decideCycle(ZONES)];
  const again = createPartitionCache();
  readBudgets(again);
  const [eager, cached] = [readBudgets(compilePartition), readBudgets(again)];
  const times = whole / half;
  const share = cached / eager;
  return [
    {
      what: `a decision about ${ZONES} zones in a cycle of leaders`,
      figure: `${whole.toFixed(1)} ms, ${times.toFixed(1)} times that about ${ZONES / 2}`,
      aim: atMost(3, " times", times),
    },
    {
      what: `${BUDGETS} budgets with patterns of their own, read again`,
      figure: `${cached.toFixed(1)} ms, ${share.toFixed(2)} times compiling them all (${eager.toFixed(0)} ms)`,
      aim: atMost(0.3, " times", share),
    },
  ];
};
