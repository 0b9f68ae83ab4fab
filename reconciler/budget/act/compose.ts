/** Composes the parts that ask budgets, shared by the reconciler and the eviction webhook. */
import type { Clock } from "../../../infra/clock.ts";
import type { Cluster } from "../../../infra/kubernetes/cluster.ts";
import { announceKind } from "../../../infra/kubernetes/optional-kind.ts";
import type { Log } from "../../../infra/log.ts";
import { createRecorder, type Recorder } from "../../report/act/reporter.ts";
import { createReserver, type Reserver } from "./reserve.ts";

interface BudgetTools {
  readonly cluster: Cluster;
  readonly clock: Clock;
  readonly log: Log;
  readonly identity: string;
}

interface ComposedBudgets extends Pick<Recorder, "emitEvents"> {
  readonly reserver: Reserver;
  /** Logs once whether the definition of budgets is installed: told after each list of budgets. */
  readonly noteKind: (isFound: boolean) => void;
}

const DEFINITION = "the definition zoneawarepoddisruptionbudgets.rollout-operator.grafana.com";

export function composeBudgets({ cluster, clock, log, identity }: BudgetTools): ComposedBudgets {
  const { emitEvents } = createRecorder({ cluster, clock, log, instance: identity });
  const noteKind = announceKind({ capability: "disruption budgets", definition: DEFINITION }, log);
  const reserver = createReserver({ cluster, clock, by: identity, noteKind, random: Math.random });
  return { emitEvents, reserver, noteKind };
}
