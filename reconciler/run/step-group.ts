/**
 * One step of one group: gather -> decide -> act.
 *
 *   settled by its status? -> done
 *   otherwise list its pods -> decideUngated -> what its gates make of that (passGates) -> act -> outcome
 */
import { hasCode, isSuperseded } from "../../infra/errors.ts";
import type { Clock } from "../../infra/clock.ts";
import type { Actor } from "../../infra/kubernetes/actor.ts";
import { gatherGroup } from "../snapshot/gather.ts";
import type { GroupGates, TickGates } from "../gates/act/tick-gates.ts";
import { wantedBy } from "../gates/wanted.ts";
import type { BudgetLists } from "../budget/act/budget-lists.ts";
import type { BudgetMaintenance } from "../budget/act/maintain-budgets.ts";
import { groupKey, type GroupSnapshot, type Zone } from "../model/zone.ts";
import type { Common, Outcome } from "../model/outcome.ts";
import type { MayDisrupt } from "../budget/act/may-disrupt.ts";
import { decideByStatus, decideUngated, passGates } from "../rollout/decide-rollout.ts";
import { listRemaining } from "../rollout/remaining.ts";
import { tooManyZones } from "../model/too-many-zones.ts";
import { scaleGroup } from "../scaling/act/scale-group.ts";
import type { Scaler } from "../scaling/act/scaler.ts";
import { type BatchActor, isOutdated } from "../rollout/act/delete-pods.ts";
import { takeStep } from "../rollout/act/take-rollout-step.ts";

export interface StepInput extends Actor {
  readonly clock: Clock;
  /** Once it fires, no further pod is deleted or called. */
  readonly stop: AbortSignal;
  readonly scaling: Omit<Scaler, keyof Actor | "clock" | "stop" | "lastRead">;
  readonly budgets: {
    readonly mayDisrupt: MayDisrupt;
    readonly maintenance: BudgetMaintenance;
  };
  readonly report: {
    /** How often in a row the group, by its key, was superseded before this step. */
    readonly timesSuperseded: (key: string) => number;
  };
}

/** What one tick has gathered for all groups. */
export interface Gathered {
  readonly budgetLists: BudgetLists;
  /**
   * Before the StatefulSets were listed, by `clock.monotonic`: a rollout that acts on an older list reads them again.
   */
  readonly gatheredAt: number;
  readonly gates: TickGates;
  /** True if the pods of the group must be read even if its status shows that it is settled. */
  readonly isResyncDue: boolean;
}

/** Never rejects: an error becomes the group's outcome. */
export async function stepGroup(zones: readonly Zone[], gathered: Gathered, input: StepInput): Promise<Outcome> {
  const common: Common = {
    namespace: zones[0]?.namespace ?? "",
    group: zones[0]?.group ?? "",
    zones,
    scalingHolds: [],
    notes: [],
  };
  const tooMany = tooManyZones({ zones });
  if (tooMany) return { ...common, state: "held", hold: tooMany };
  const { cluster, fence, freshness, stop } = input;
  try {
    const scaler = { ...input.scaling, cluster, fence, freshness, clock: input.clock, stop };
    const { change, scalingHolds, notes } = await scaleGroup(zones, scaler);
    const seen = { ...common, scalingHolds };
    const outcome = change
      ? { ...seen, state: "acted" as const, decision: change, effect: { replaced: [], denied: [] } }
      : await rollOut(seen, gathered, input).catch((error: unknown) => explain(error, seen, input));
    return { ...outcome, notes };
  } catch (error) {
    return explain(error, common, input);
  }
}

async function rollOut(
  common: Common,
  { budgetLists, gatheredAt, gates, isResyncDue }: Gathered,
  input: StepInput,
): Promise<Outcome> {
  const { zones } = common;
  const { budgets, clock } = input;
  const gated = gates.of(zones);
  const ungated = decideByStatus(zones);
  const early = outcomeByStatus(ungated, gated, common);
  const isOver = early && !isResyncDue && !budgets.maintenance.needsReadyTime(zones);
  if (ungated === undefined && (isOver || early?.state === "held")) gated.follow({ kind: "settled" });
  if (isOver) return early;

  const listed = await budgetLists.of(common.namespace);
  const snapshot = await gatherGroup(zones, input);
  try {
    const { cluster, fence, freshness, stop } = input;
    const actor = { cluster, fence, freshness, mayDisrupt: budgets.mayDisrupt, clock, gatheredAt, stop };
    const seen = { ...common, remaining: listRemaining(snapshot.zones) };
    return early?.state === "held"
      ? { ...early, remaining: seen.remaining }
      : await rollOutZones(snapshot, seen, { ...actor, gated });
  } finally {
    await budgets.maintenance.maintainGroup(snapshot, listed, { fence: input.fence, signal: input.stop });
  }
}

/** What is decided by status alone, gates included; undefined if the pods must be read. */
function outcomeByStatus(
  ungated: ReturnType<typeof decideByStatus>,
  { verdicts }: GroupGates,
  common: Common,
): Outcome | undefined {
  if (ungated === "readPods") return undefined;
  const held = ungated ?? verdicts?.beforeSettled;
  return held ? { ...common, state: "held", hold: held } : { ...common, state: "settled" };
}

interface GroupActor extends BatchActor {
  readonly gated: GroupGates;
}

async function rollOutZones(
  gathered: GroupSnapshot,
  common: Common,
  { gated, ...actor }: GroupActor,
): Promise<Outcome> {
  const { verdicts } = gated;
  const snapshot = { ...gathered, now: actor.clock.now() };
  const ungated = decideUngated(snapshot);
  if (verdicts) gated.follow(wantedBy(ungated));
  let decision = passGates(ungated, verdicts);
  const isLate = isOutdated(actor);
  if (isLate && decision?.action === "deletePods") decision = passGates(ungated, await gated.readAgain());
  if (!decision) return { ...common, state: "settled" };
  if (decision.action === "hold") return { ...common, state: "held", hold: decision };

  const effect = await takeStep(decision, snapshot.zones, actor);
  const [denial] = effect.denied;
  if (denial && effect.replaced.length === 0) return { ...common, state: "held", hold: denial };
  return { ...common, state: "acted", decision, effect };
}

/** A deleted pod, a changed zone or a stale read is no failure, but the decision is outdated. */
function explain(error: unknown, common: Common, { report }: StepInput): Outcome {
  if (!isSuperseded(error) && !hasCode(error, "Cancelled")) return { ...common, state: "failed", error };
  return { ...common, state: "superseded", error, times: report.timesSuperseded(groupKey(common)) + 1 };
}
