/**
 * One pass over all groups: gather -> decide -> act, at most 8 groups at a time, each on its own.
 *
 *   list StatefulSets -> per group: status says settled? -> done
 *                                   otherwise list its pods -> decideRollout -> act -> outcome
 */
import { hasCode, isSuperseded } from "../infra/errors.ts";
import { visitEach } from "../infra/slots.ts";
import { act } from "./act.ts";
import { gatherGroup, gatherZones, type ZoneList } from "./gather.ts";
import type { BatchActor } from "./delete-pods.ts";
import type { GroupSnapshot, Zone } from "./model/zone.ts";
import type { Common, Outcome } from "./report/outcome.ts";
import { decideByStatus, decideRollout } from "./rollout/decide.ts";
import { scaleGroup } from "./scaler/scale-group.ts";
import type { Scaler } from "./scaler/scaler.ts";
import type { BudgetLists } from "./maintenance/budget-lists.ts";
import type { BudgetMaintenance } from "./maintenance/maintain-budgets.ts";

const GROUPS_AT_A_TIME = 8;

/** Note with the key of the group that was begun last: the next tick goes on after it. */
export const BEGUN_LAST = "zonewise/begun-last";

export interface TickInput extends Scaler {
  /** "" stands for all namespaces. */
  readonly namespaces: readonly string[];
  /** True for a group, by `<namespace>/<group>`, whose pods are to be looked at even if its status says that there is nothing to do. */
  readonly lookCloser: (key: string) => boolean;
  /** How often in a row the group was outrun before this tick. */
  readonly timesOutrun: (key: string) => number;
  readonly maintenance: BudgetMaintenance;
  /** Kept from tick to tick, by whichever process; without it each tick begins with the first group. */
  readonly notes?: Map<string, string>;
  /** Called with each outcome as soon as it is known, with the milliseconds the group took. */
  readonly onOutcome: (outcome: Outcome, tookMs: number) => void;
  readonly monotonic: () => number;
  /** Once it fires, no further group is begun, and nothing more is asked of pods. */
  readonly stop: AbortSignal;
}

export interface TickResult extends ZoneList {
  readonly outcomes: readonly Outcome[];
  /** Groups that the end came before. */
  readonly skipped: number;
  /** Something was written: the next tick follows at once. */
  readonly acted: boolean;
}

/** Rejects only if the StatefulSets could not be listed; what befalls one group is its own outcome. */
export async function tick(input: TickInput): Promise<TickResult> {
  const list = await gatherZones(input.cluster, input.namespaces, input.freshness);
  const budgets = await input.maintenance.beginTick(input.namespaces);
  const outcomes: Outcome[] = [];
  const queue = takeTurns([...list.groups], input.notes?.get(BEGUN_LAST));
  const others = input.maintenance.maintainOthers(list.groups, input.fence, input.stop);
  await visitEach(queue, { atOnce: GROUPS_AT_A_TIME, signal: input.stop }, async ([key, zones]) => {
    const startedAt = input.monotonic();
    // At once, for the process may be killed.
    input.notes?.set(BEGUN_LAST, key);
    const outcome = await reconcileGroup(key, zones, budgets, input);
    outcomes.push(outcome);
    input.onOutcome(outcome, input.monotonic() - startedAt);
  });
  await others;
  // After a whole cycle the next one begins a group later, so that the end of a run does not always cut the same group short.
  const [first] = queue;
  if (first && outcomes.length === queue.length) input.notes?.set(BEGUN_LAST, first[0]);
  return { ...list, outcomes, skipped: queue.length - outcomes.length, acted: outcomes.some((outcome) => outcome.state === "acted") };
}

/** The groups in the order of their keys, beginning after the one that was begun last: every group is begun before any is begun again. */
function takeTurns<T>(groups: readonly [key: string, T][], begunLast = ""): [key: string, T][] {
  const sorted = groups.toSorted(([a], [b]) => (a < b ? -1 : 1));
  return [...sorted.filter(([key]) => key > begunLast), ...sorted.filter(([key]) => key <= begunLast)];
}

async function reconcileGroup(key: string, zones: readonly Zone[], budgets: BudgetLists, input: TickInput): Promise<Outcome> {
  const common: Common = { namespace: zones[0]?.namespace ?? "", group: zones[0]?.group ?? "", zones, waits: [], notes: [] };
  try {
    const { change, scalingHolds, notes } = await scaleGroup(zones, input);
    const seen = { ...common, waits: scalingHolds };
    const outcome = change
      ? { ...seen, state: "acted" as const, decision: change, effect: { replaced: [], denied: [] } }
      : await rollOut(key, seen, budgets, input).catch((error: unknown) => explain(error, key, seen, input));
    return { ...outcome, notes };
  } catch (error) {
    return explain(error, key, common, input);
  }
}

async function rollOut(key: string, common: Common, budgets: BudgetLists, input: TickInput): Promise<Outcome> {
  const { zones } = common;
  const byStatus = decideByStatus(zones);
  const early: Outcome | undefined =
    byStatus === "look" ? undefined : byStatus ? { ...common, state: "held", hold: byStatus } : { ...common, state: "settled" };
  if (early && !input.lookCloser(key) && !input.maintenance.needsReadyTime(zones)) return early;

  const gatheredAt = input.monotonic();
  const listed = await input.maintenance.readBudgets(common.namespace, budgets);
  const snapshot = await gatherGroup(input.cluster, zones, input.freshness);
  try {
    return early?.state === "held" ? early : await rollOutZones(snapshot, common, { ...input, gatheredAt });
  } finally {
    await input.maintenance.maintainGroup(snapshot, listed, input.fence);
  }
}

async function rollOutZones(snapshot: GroupSnapshot, common: Common, actor: BatchActor): Promise<Outcome> {
  const decision = decideRollout(snapshot);
  if (!decision) return { ...common, state: "settled" };
  if (decision.action === "hold") return { ...common, state: "held", hold: decision };

  const effect = await act(decision, snapshot.zones, actor);
  const [denial] = effect.denied;
  if (denial && effect.replaced.length === 0) return { ...common, state: "held", hold: denial };
  return { ...common, state: "acted", decision, effect };
}

/** A pod that is gone, a zone that changed, a view that was stale: nothing is wrong, but nothing of this may be acted on. */
function explain(error: unknown, key: string, common: Common, input: TickInput): Outcome {
  if (!isSuperseded(error) && !hasCode(error, "Cancelled")) return { ...common, state: "failed", error };
  return { ...common, state: "outrun", error, times: input.timesOutrun(key) + 1 };
}
