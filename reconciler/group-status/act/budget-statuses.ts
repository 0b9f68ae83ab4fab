/**
 * Writes what each disruption budget protects into its status (§5.10) when that has changed, beside the ticks, for the
 * budgets that the tick has read anyway. A budget that is new or has another spec is written at once, every other every
 * 30 s at most.
 */
import { setImmediate } from "node:timers/promises";
import type { Clock } from "../../../infra/clock.ts";
import type { Cluster } from "../../../infra/kubernetes/cluster.ts";
import { createFreshness } from "../../../infra/kubernetes/freshness.ts";
import type { Fence } from "../../../infra/kubernetes/lease.ts";
import { disruptionBudgets, statefulSets } from "../../../infra/kubernetes/resources.ts";
import { logUnwritten, writeStatus } from "../../../infra/kubernetes/write-status.ts";
import type { Log } from "../../../infra/log.ts";
import { visitEach } from "../../../infra/slots.ts";
import { describeProtection, type Protection } from "../../budget/protection.ts";
import { readReservations } from "../../budget/reservation.ts";
import { matchesLabels } from "../../budget/selector.ts";
import { readAll } from "../../snapshot/gather.ts";
import { readIdentity } from "../../model/identity.ts";
import { byName } from "../../model/order.ts";
import { readZone, selectorText, type Zone, type ZoneList } from "../../model/zone.ts";
import type { ListedBudget } from "../../budget/act/gather-budget.ts";

export interface BudgetStatuses {
  /** The budgets of a namespace ("" for all), as they were just read; undefined if the cluster knows none. */
  readonly note: (scope: string, budgets: readonly ListedBudget[] | undefined) => void;
  /** Writes what has changed, if it is time to. Never rejects. */
  readonly write: (groups: ZoneList["groups"], fence: Fence, signal: AbortSignal) => Promise<void>;
}

export interface BudgetStatusTools {
  readonly cluster: Cluster;
  readonly clock: Pick<Clock, "now" | "monotonic">;
  readonly log: Log;
}

const EVERY_MS = 30_000;
const AT_A_TIME = 4;
/** Milliseconds: of a call, and after which no further budget is begun. */
const CALL_MS = 5000;
const BEGIN_FOR_MS = 5000;

export function createBudgetStatuses(tools: BudgetStatusTools): BudgetStatuses {
  const { clock } = tools;
  const noted = new Map<string, readonly ListedBudget[]>();
  /** The generations that were written at once, by UID: a definition may drop what it does not know. */
  const written = new Map<string, number>();
  let writtenAt = -Infinity;

  function isNews({ ref, object: { metadata, status } }: ListedBudget): boolean {
    const { generation = 0 } = metadata;
    if (status?.observedGeneration === generation || written.get(ref.uid) === generation) return false;
    written.set(ref.uid, generation);
    return true;
  }

  return {
    note: (scope, budgets) => void noted.set(scope, budgets ?? []),
    async write(groups, fence, signal) {
      const startedAt = clock.monotonic();
      const isDue = startedAt - writtenAt >= EVERY_MS;
      const budgets = [...noted.values()].flat().filter((budget) => isNews(budget) || isDue);
      if (budgets.length === 0) return;
      if (isDue) {
        writtenAt = startedAt;
        noted.clear();
      }
      const zones = [...groups.values()].flat();
      await visitEach(budgets, { atOnce: AT_A_TIME, signal }, async (budget) => {
        if (clock.monotonic() - startedAt < BEGIN_FOR_MS) await writeOne(budget, zones, { ...tools, fence });
      });
    },
  };
}

async function writeOne(
  budget: ListedBudget,
  zones: readonly Zone[],
  tools: BudgetStatusTools & { readonly fence: Fence },
): Promise<void> {
  const { clock, log } = tools;
  const { object, ref } = budget;
  const { namespace, name } = ref;
  try {
    // To read its pattern takes milliseconds: others have the process between two budgets.
    await setImmediate();
    const { content } = budget;
    const earlier = (object.status ?? {}) as Partial<Protection>;
    const selected = await selectZones(budget, zones, tools);
    const reservations = readReservations(object.status?.disruptedPods);
    const { generation = 0 } = object.metadata;
    const next = describeProtection({ content, generation, zones: selected, reservations, earlier, now: clock.now() });
    const after = { ...object.status, ...next };
    // With the version that was read: a reservation that was made since then stays.
    const change = {
      object: readIdentity(object.metadata),
      before: object.status ?? {},
      after,
      by: { kind: ref.kind },
    };
    await writeStatus<typeof object, object>(disruptionBudgets, change, tools);
  } catch (error) {
    // A definition may have no status to write to.
    logUnwritten(log, "the status of a disruption budget could not be written", { namespace, budget: name, error });
  }
}

/** A budget that selects no zone of a group costs a list of StatefulSets. */
async function selectZones(
  { matchLabels, ref }: ListedBudget,
  zones: readonly Zone[],
  { cluster, clock, log }: BudgetStatusTools,
): Promise<Zone[]> {
  if (!matchLabels) return [];
  const grouped = zones.filter((zone) => zone.namespace === ref.namespace && matchesLabels(matchLabels, zone.labels));
  if (grouped.length > 0) return grouped.toSorted(byName);
  const query = { namespace: ref.namespace, labelSelector: selectorText({ matchLabels }) };
  const source = { cluster, freshness: createFreshness(clock, log) };
  return (
    await readAll({ resource: statefulSets, query, read: readZone }, source, { deadlineMs: CALL_MS })
  ).items.toSorted(byName);
}
