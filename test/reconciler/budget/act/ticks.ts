/** Ticks of a reconciler process that maintains budgets. */
import { createLog } from "../../../../infra/log.ts";
import { createMetrics } from "../../../../infra/metrics/metrics.ts";
import { createBudgetMaintenance } from "../../../../reconciler/budget/act/maintain-budgets.ts";
import { observeBudgets } from "../../../../reconciler/budget/act/compose.ts";
import { tickOnce, type Stage } from "../../stage.ts";
import { amend } from "../../../builders.ts";

export const LIST = "GET apps/v1/statefulsets collection";
export const BUDGET_LIST = "GET rollout-operator.grafana.com/v1/zoneawarepoddisruptionbudgets collection";
export const POD_LIST = "GET core/v1/pods collection";
export const DELAYED = { podNamePartitionRegex: "[a-z\\-]+-zone-[a-z]-([0-9]+)", crossZoneEvictionDelay: "1m" };

/** A reconciler process: its ticks, its calls and its log. */
export function startTicks(stage: Stage) {
  const { cluster, calls } = stage.connect();
  const lines: string[] = [];
  const log = createLog({
    level: "info",
    write: (line) => void lines.push(line),
    now: () => new Date(stage.time.now()),
  });
  const onBudgets = observeBudgets({ log, metrics: createMetrics().budgets, emitEvents: () => {} });
  const maintenance = createBudgetMaintenance({ cluster, clock: stage.clock, log, onBudgets });
  return {
    lines,
    /** Runs one tick; resolves with its API calls. */
    tick: async (closer = false, namespaces: readonly string[] = ["default"]): Promise<string[]> => {
      calls.length = 0;
      await tickOnce(stage, cluster, { maintenance, namespaces, takeResync: () => closer });
      return [...calls];
    },
  };
}

export const isWrite = (call: string): boolean => !call.startsWith("GET");

/** Sets the pod's Ready condition. */
export async function setReady({ emulator: { store }, time }: Stage, pod: string, ready: boolean): Promise<void> {
  amend(store, "Pod", pod, { annotations: { "sim/ready": String(ready) } });
  await time.advance(1000);
}
