/** Composes the parts that ask budgets, shared by the reconciler and the eviction webhook. */
import type { BudgetMetrics } from "../../../infra/metrics/metrics.ts";
import type { Clock } from "../../../infra/clock.ts";
import type { Cluster } from "../../../infra/kubernetes/cluster.ts";
import type { Log } from "../../../infra/log.ts";
import { type CompilePartition, createPartitionCache } from "../partition.ts";
import type { ListedBudget, OnBudgets } from "./gather-budget.ts";
import { createRecorder, type Recorder } from "../../report/act/recorder.ts";
import { createReserver, type Reserver } from "./reserve.ts";
import { setImmediate } from "node:timers/promises";
import { announceKind } from "../../../infra/kubernetes/optional-kind.ts";
import type { Draft } from "../../report/events.ts";

interface BudgetTools {
  readonly cluster: Cluster;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: BudgetMetrics;
  /** Names the process: in reservations and Events. */
  readonly identity: string;
}

interface ComposedBudgets extends Pick<Recorder, "emitEvents"> {
  readonly reserver: Reserver;
  readonly onBudgets: OnBudgets;
  /** Shared by all lists of budgets of the process. */
  readonly compilePartition: CompilePartition;
}

export function composeBudgets({ cluster, clock, log, metrics, identity }: BudgetTools): ComposedBudgets {
  const { emitEvents } = createRecorder({ cluster, clock, log, instance: identity });
  const onBudgets = observeBudgets({ log, metrics, emitEvents });
  const compilePartition = createPartitionCache();
  const options = { cluster, clock, by: identity, onBudgets, compilePartition, random: Math.random };
  return { emitEvents, onBudgets, compilePartition, reserver: createReserver(options) };
}

interface BudgetObserver {
  readonly log: Log;
  readonly metrics: BudgetMetrics;
  /** Records Events. */
  readonly emitEvents: (drafts: readonly Draft[]) => void;
}

/** Budgets that are judged before the event loop runs other work: a pattern takes milliseconds. */
const MAX_AT_ONCE = 5;

const DEFINITION = "the definition zoneawarepoddisruptionbudgets.rollout-operator.grafana.com";

interface Seen {
  /** UID and generation. */
  readonly version: string;
  /** Undefined for a valid budget, and for one that is yet to be judged. */
  problem?: string | undefined;
}

/**
 * Reports on the budgets that were read: the problem of each, once a change; a missing definition, once; and the
 * metric.
 */
export function observeBudgets({ log, metrics, emitEvents }: BudgetObserver): OnBudgets {
  /** The budgets as last seen, by namespace and name. */
  const seen = new Map<string, Map<string, Seen>>();
  const unjudged: (() => void)[] = [];
  let isJudging = false;
  // Looked for each time: a budget counts from the moment its definition is installed.
  const noteKind = announceKind({ capability: "disruption budgets", definition: DEFINITION }, log);

  function judge({ ref, content }: ListedBudget, now: Seen): void {
    now.problem = "problem" in content ? content.problem : undefined;
    if (now.problem === undefined) return metrics.observed("updated");
    complain(ref, now.problem);
    log.error("a disruption budget is not valid", { namespace: ref.namespace, budget: ref.name, problem: now.problem });
  }

  function complain(ref: ListedBudget["ref"], problem: string): void {
    metrics.observed("invalid");
    emitEvents([
      {
        regarding: ref,
        type: "Warning",
        reason: "BudgetInvalid",
        message: `no pod that it selects is evicted: ${problem}`,
      },
    ]);
  }

  async function judgeInTurns(): Promise<void> {
    if (isJudging) return;
    isJudging = true;
    while (unjudged.length > 0) {
      for (const next of unjudged.splice(0, MAX_AT_ONCE)) next();
      if (unjudged.length > 0) await setImmediate();
    }
    isJudging = false;
  }

  function observe(budget: ListedBudget, earlier: Seen | undefined): Seen {
    const version = versionOf(budget);
    if (earlier?.version !== version) {
      const now: Seen = { version };
      unjudged.push(() => judge(budget, now));
      return now;
    }
    if (earlier.problem === undefined) metrics.observed("ignored");
    else complain(budget.ref, earlier.problem);
    return earlier;
  }

  return (namespace, budgets) => {
    noteKind(budgets !== undefined);
    const earlier = seen.get(namespace) ?? new Map<string, Seen>();
    const now = new Map(
      (budgets ?? []).map((budget) => [budget.ref.name, observe(budget, earlier.get(budget.ref.name))]),
    );
    for (const name of earlier.keys()) if (!now.has(name)) metrics.observed("deleted");
    seen.set(namespace, now);
    void judgeInTurns();
  };
}

function versionOf({ ref, object }: ListedBudget): string {
  return `${ref.uid}/${object.metadata.generation}`;
}
