/**
 * One pass over all groups: gather -> decide -> act, at most 8 groups at a time, each on its own.
 *
 *   list StatefulSets -> per group: status says settled? -> done
 *                                   otherwise list its pods -> decideRollout -> act -> outcome
 */
import type { Cluster } from "../infra/cluster.ts";
import { hasCode } from "../infra/errors.ts";
import type { Fence } from "../infra/lease.ts";
import { act, type MayDisrupt } from "./act.ts";
import { gatherGroup, gatherZones, type Freshness, type ZoneList } from "./gather.ts";
import type { Zone } from "./model/zone.ts";
import type { Outcome } from "./outcome.ts";
import { decideByStatus, decideRollout } from "./rollout/decide.ts";

const GROUPS_AT_A_TIME = 8;

export interface TickInput {
  readonly cluster: Cluster;
  readonly fence: Fence;
  /** "" stands for all namespaces. */
  readonly namespaces: readonly string[];
  readonly freshness: Freshness;
  readonly mayDisrupt: MayDisrupt;
  /** True for a group, by `<namespace>/<group>`, whose pods are to be looked at even if its status says that it is settled. */
  readonly lookCloser: (key: string) => boolean;
  /** How often in a row the group was outrun before this tick. */
  readonly timesOutrun: (key: string) => number;
  /** Called with each outcome as soon as it is known, with the milliseconds the group took. */
  readonly onOutcome: (outcome: Outcome, tookMs: number) => void;
  readonly monotonic: () => number;
  /** Once it fires, no further group is begun. */
  readonly stop: AbortSignal;
}

export interface TickResult extends ZoneList {
  readonly outcomes: readonly Outcome[];
  /** Something was written: the next tick follows at once. */
  readonly acted: boolean;
}

/** Rejects only if the StatefulSets could not be listed; what befalls one group is its own outcome. */
export async function tick(input: TickInput): Promise<TickResult> {
  const list = await gatherZones(input.cluster, input.namespaces, input.freshness);
  const outcomes: Outcome[] = [];
  const queue = list.groups.entries();
  async function work(): Promise<void> {
    for (const [key, zones] of queue) {
      if (input.stop.aborted) return;
      const startedAt = input.monotonic();
      const outcome = await reconcileGroup(key, zones, input);
      outcomes.push(outcome);
      input.onOutcome(outcome, input.monotonic() - startedAt);
    }
  }
  await Promise.all(Array.from({ length: GROUPS_AT_A_TIME }, work));
  return { ...list, outcomes, acted: outcomes.some((outcome) => outcome.state === "acted") };
}

async function reconcileGroup(key: string, zones: readonly Zone[], input: TickInput): Promise<Outcome> {
  const common = { namespace: zones[0]?.namespace ?? "", group: zones[0]?.group ?? "", zones };
  try {
    const byStatus = decideByStatus(zones);
    if (byStatus && byStatus !== "look") return { ...common, state: "held", hold: byStatus };
    if (!byStatus && !input.lookCloser(key)) return { ...common, state: "settled" };

    const snapshot = await gatherGroup(input.cluster, zones, input.freshness);
    const seen = { ...common, zones: snapshot.zones };
    const decision = decideRollout(snapshot);
    if (!decision) return { ...seen, state: "settled" };
    if (decision.action === "hold") return { ...seen, state: "held", hold: decision };

    const effect = await act(decision, input);
    const [denial] = effect.denied;
    if (denial && effect.replaced.length === 0) return { ...seen, state: "held", hold: denial };
    return { ...seen, state: "acted", decision, effect };
  } catch (error) {
    // A pod that is gone, a zone that changed, a view that was stale: nothing is wrong, but nothing of this may be acted on.
    if (hasCode(error, "Conflict", "NotFound", "StaleRead"))
      return { ...common, state: "outrun", error, times: input.timesOutrun(key) + 1 };
    return { ...common, state: "failed", error };
  }
}
