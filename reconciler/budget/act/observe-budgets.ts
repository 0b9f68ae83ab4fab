/**
 * Reports on the budgets that were read: the problem of each, once a change; a missing definition, once; and the
 * metric.
 */
import { setImmediate } from "node:timers/promises";
import type { BudgetMetrics } from "../../../infra/metrics/metrics.ts";
import { announceKind } from "../../../infra/kubernetes/optional-kind.ts";
import type { Log } from "../../../infra/log.ts";
import type { ListedBudget, OnBudgets } from "./gather-budget.ts";
import type { Draft } from "../../report/events.ts";

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
