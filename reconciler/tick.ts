/**
 * One pass over all groups: gather -> decide -> act, 8 groups at a time at most, independently of each other.
 *
 *   list StatefulSets -> per group: settled by its status? -> done
 *                                   otherwise list its pods -> decideRollout -> act -> outcome
 */
import type { MayDisrupt } from "./reservations/may-disrupt.ts";
import type { Clock } from "../infra/clock.ts";
import { hasCode, isSuperseded } from "../infra/errors.ts";
import { visitEach } from "../infra/slots.ts";
import { earliest } from "../infra/timestamp.ts";
import { takeStep } from "./updater/take-step.ts";
import type { Actor } from "../infra/kubernetes/actor.ts";
import type { BatchActor } from "./updater/delete-pods.ts";
import { gatherGroup, gatherZones } from "./gather.ts";
import type { BudgetLists } from "./maintenance/budget-lists.ts";
import type { Checker } from "./checking/ask-prometheus.ts";
import type { Gates, GroupGates, TickGates } from "./gating/gates.ts";
import { wantedBy } from "./gating/wanted.ts";
import type { BudgetMaintenance } from "./maintenance/maintain-budgets.ts";
import type { Hold } from "./model/decision.ts";
import { groupKey, type GroupSnapshot, type Zone } from "./model/zone.ts";
import type { PhasedTick } from "./phasing/phased-tick.ts";
import type { Draft } from "./report/events.ts";
import type { Common, Outcome, TickResult } from "./report/outcome.ts";
import { decideByStatus, decideRollout } from "./rollout/decide.ts";
import { planRollout } from "./rollout/plan.ts";
import { scaleGroup } from "./scaler/scale-group.ts";
import type { Scaler } from "./scaler/scaler.ts";

const GROUPS_AT_A_TIME = 8;

/** Annotation of the Lease with the key of the group that was started last: the next tick continues after it. */
export const LAST_STARTED = "zonewise/last-started-group";

export interface TickInput extends Actor {
  /** "" for all namespaces. */
  readonly namespaces: readonly string[];
  readonly clock: Pick<Clock, "now" | "monotonic">;
  /** Once it fires, no further group is started and no further pod is called. */
  readonly stop: AbortSignal;
  /** Which groups to resync, and which to start first; groups by `<namespace>/<group>`. */
  readonly turns: {
    /** True for a group whose pods must be read even if its status shows that it is settled. */
    readonly isResyncDue: (key: string) => boolean;
    /** Annotations of the Lease, which outlive ticks and processes; without them each tick starts with the first group. */
    readonly annotations?: Map<string, string>;
  };
  readonly scaling: Omit<Scaler, keyof Actor | "clock" | "stop">;
  readonly budgets: {
    readonly mayDisrupt: MayDisrupt;
    readonly maintenance: BudgetMaintenance;
  };
  /** Asks Prometheus beside the groups, and holds zones back by gates. */
  readonly checking: { readonly checker: Checker; readonly gates: Gates };
  /** Advances PhasedRollouts beside the groups. */
  readonly phased: PhasedTick;
  readonly report: {
    /** Records Events. */
    readonly record: (drafts: readonly Draft[]) => void;
    /** How often in a row the group, by its key, was superseded before this tick. */
    readonly timesSuperseded: (key: string) => number;
    /** Called with each outcome at once, and with the milliseconds that the group took. */
    readonly onOutcome: (outcome: Outcome, tookMs: number) => void;
  };
}

/** Rejects only if the StatefulSets could not be listed; an error in one group becomes its outcome. */
export async function tick(input: TickInput): Promise<TickResult> {
  const { cluster, fence, freshness, namespaces, clock, stop, turns, budgets, checking, report } = input;
  const gatheredAt = clock.monotonic();
  using round = checking.checker.begin(stop);
  const beside = { cluster, fence, freshness, namespaces, round, record: report.record };
  const [list, gates] = await Promise.all([gatherZones(namespaces, input), checking.gates.begin(beside)]);
  const phasing = input.phased({ ...beside, stop });
  const budgetLists = await budgets.maintenance.beginTick(namespaces);
  const outcomes: Outcome[] = [];
  const queue = takeTurns([...list.groups], turns.annotations?.get(LAST_STARTED));
  const others = budgets.maintenance.maintainOthers(list.groups, input.fence, stop);
  await visitEach(queue, { atOnce: GROUPS_AT_A_TIME, signal: stop }, async ([key, zones]) => {
    const startedAt = clock.monotonic();
    // Before the group is reconciled, as the process may be killed.
    turns.annotations?.set(LAST_STARTED, key);
    const outcome = await reconcileGroup(zones, { budgetLists, gatheredAt, gates }, input);
    outcomes.push(outcome);
    report.onOutcome(outcome, clock.monotonic() - startedAt);
  });
  await others;
  const [phased, gated] = await Promise.all([phasing, gates.end(list.groups)]);
  // The cycle after a complete one starts a group later, so that the end of a run does not always interrupt the same group.
  const [first] = queue;
  if (first && outcomes.length === queue.length) turns.annotations?.set(LAST_STARTED, first[0]);
  return {
    ...list,
    outcomes,
    skipped: queue.length - outcomes.length,
    acted: phased.acted || gated.progressed || outcomes.some((outcome) => outcome.state === "acted"),
    nextCheckAt: earliest([phased.dueAt, gated.nextAt]),
    phasedFailed: phased.failed,
  };
}

/** The groups in the order of their keys, starting after the last started one: every group is started once before any is started twice. */
function takeTurns<T>(groups: readonly [key: string, T][], lastStarted = ""): [key: string, T][] {
  const sorted = groups.toSorted(([a], [b]) => (a < b ? -1 : 1));
  return [...sorted.filter(([key]) => key > lastStarted), ...sorted.filter(([key]) => key <= lastStarted)];
}

/** What one tick has gathered for all groups. */
interface Gathered {
  readonly budgetLists: BudgetLists;
  /** Before the StatefulSets were listed, by `clock.monotonic`: a rollout that acts on an older list reads them again. */
  readonly gatheredAt: number;
  readonly gates: TickGates;
}

async function reconcileGroup(zones: readonly Zone[], gathered: Gathered, input: TickInput): Promise<Outcome> {
  const common: Common = { namespace: zones[0]?.namespace ?? "", group: zones[0]?.group ?? "", zones, scalingHolds: [], notes: [] };
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

async function rollOut(common: Common, { budgetLists, gatheredAt, gates }: Gathered, input: TickInput): Promise<Outcome> {
  const { zones } = common;
  const { turns, budgets, clock } = input;
  const gated = gates.of(zones);
  const byStatus = decideByStatus(zones, gated.verdicts);
  const early = byStatus === "look" ? undefined : outcomeOf(byStatus, common);
  const isOver = early && !turns.isResyncDue(groupKey(common)) && !budgets.maintenance.needsReadyTime(zones);
  if ((isOver || byStatus) && decideByStatus(zones) === undefined) gated.follow({ kind: "settled" });
  if (isOver) return early;

  const listed = await budgets.maintenance.readBudgets(common.namespace, budgetLists);
  const snapshot = await gatherGroup(zones, input);
  try {
    const { cluster, fence, freshness, stop } = input;
    const actor = { cluster, fence, freshness, mayDisrupt: budgets.mayDisrupt, clock, gatheredAt, stop };
    const seen = { ...common, plan: planRollout(snapshot.zones) };
    return early?.state === "held" ? { ...early, plan: seen.plan } : await rollOutZones(snapshot, seen, { ...actor, gated });
  } finally {
    await budgets.maintenance.maintainGroup(snapshot, listed, input.fence);
  }
}

const outcomeOf = (held: Hold | undefined, common: Common): Outcome =>
  held ? { ...common, state: "held", hold: held } : { ...common, state: "settled" };

interface GroupActor extends BatchActor {
  readonly gated: GroupGates;
}

async function rollOutZones(snapshot: GroupSnapshot, common: Common, { gated, ...actor }: GroupActor): Promise<Outcome> {
  const { verdicts } = gated;
  if (verdicts) gated.follow(wantedBy(snapshot));
  const decision = decideRollout(verdicts ? { ...snapshot, gates: verdicts } : snapshot);
  if (!decision) return { ...common, state: "settled" };
  if (decision.action === "hold") return { ...common, state: "held", hold: decision };

  const effect = await takeStep(decision, snapshot.zones, actor);
  const [denial] = effect.denied;
  if (denial && effect.replaced.length === 0) return { ...common, state: "held", hold: denial };
  return { ...common, state: "acted", decision, effect };
}

/** A deleted pod, a changed zone or a stale read is no failure, but the decision is outdated. */
function explain(error: unknown, common: Common, { report }: TickInput): Outcome {
  if (!isSuperseded(error) && !hasCode(error, "Cancelled")) return { ...common, state: "failed", error };
  return { ...common, state: "superseded", error, times: report.timesSuperseded(groupKey(common)) + 1 };
}
