/**
 * Writes the protection of each disruption budget into its status (§5.10) when it has changed, beside the ticks, for
 * the budgets that the tick has read anyway. A budget that is new or has another spec is written at once, every other
 * every 30 s at most.
 */
import { setImmediate } from "node:timers/promises";
import type { Clock } from "../../../infra/clock.ts";
import type { Cluster } from "../../../infra/kubernetes/cluster.ts";
import { readIdentity } from "../../../infra/kubernetes/identity.ts";
import type { Context } from "../../../infra/kubernetes/context.ts";
import { disruptionBudgets } from "../../../infra/kubernetes/custom-resources.ts";
import { pods, statefulSets } from "../../../infra/kubernetes/resources.ts";
import { logUnwritten, writeStatus } from "../../../infra/kubernetes/write-status.ts";
import type { Log } from "../../../infra/log.ts";
import { once } from "../../../infra/once.ts";
import { visitEach } from "../../../infra/slots.ts";
import { spreadHash } from "../../../infra/hash.ts";
import { byName } from "../../model/order.ts";
import { readPod } from "../../model/pod.ts";
import { matchesLabels, selectorText } from "../../model/label-selector.ts";
import { readZone, type Zone, type ZoneList } from "../../model/zone.ts";
import { findOrphans, readAll } from "../../snapshot/gather.ts";
import type { Guard } from "../guard.ts";
import { describeProtection, type Protection } from "../protection.ts";
import { readReservations } from "../reservation.ts";
import type { ListedBudget } from "./gather-budget.ts";
import { EVICTIONS, readHooks, seeGuard } from "./see-guard.ts";

export interface BudgetStatuses {
  /** The budgets of a namespace ("" for all), as they were just read; undefined if the cluster knows none. */
  readonly note: (scope: string, budgets: readonly ListedBudget[] | undefined) => void;
  /** Writes the changed statuses that are due. Never rejects. */
  readonly write: (groups: ZoneList["groups"], context: Pick<Context, "fence" | "stop">) => Promise<void>;
}

interface BudgetStatusTools {
  readonly cluster: Cluster;
  readonly clock: Pick<Clock, "now" | "monotonic">;
  readonly log: Log;
}

const EVERY_MS = 30_000;
const AT_A_TIME = 4;
/** Milliseconds: the limit of a call; after this time no further budget is begun. */
const CALL_MS = 5000;
const BEGIN_FOR_MS = 5000;

/** The tools that the writes of one round share. */
interface Round extends BudgetStatusTools, Pick<Context, "fence" | "stop"> {
  /** The zones of all groups. */
  readonly zones: readonly Zone[];
  readonly guardOf: (namespace: string) => Promise<Guard>;
  /** True for a budget whose spec is new: nobody has looked for its orphaned zones. */
  readonly isNews: (budget: ListedBudget) => boolean;
}

export function createBudgetStatuses(tools: BudgetStatusTools): BudgetStatuses {
  const { cluster, clock } = tools;
  const noted = new Map<string, readonly ListedBudget[]>();
  /** The generations that were written at once, by UID: a definition may drop fields that it does not know. */
  const written = new Map<string, number>();
  let writtenAt = -Infinity;

  function takeNews({ ref, object: { metadata, status } }: ListedBudget): boolean {
    const { generation = 0 } = metadata;
    if (status?.observedGeneration === generation || written.get(ref.uid) === generation) return false;
    written.set(ref.uid, generation);
    return true;
  }

  /** Reads what is registered, and asks the webhook of a namespace, once a round. */
  function createGuards(stop: AbortSignal): Round["guardOf"] {
    const asking = { cluster, call: { deadlineMs: CALL_MS, signal: stop } };
    const registered = once(async (_all: "all") => await readHooks(EVICTIONS, asking));
    return once(async (namespace: string) => await seeGuard(namespace, await registered("all"), asking));
  }

  return {
    note: (scope, budgets) => void noted.set(scope, budgets ?? []),
    async write(groups, { fence, stop }) {
      const startedAt = clock.monotonic();
      const isDue = startedAt - writtenAt >= EVERY_MS;
      const all = [...noted.values()].flat();
      const news = new Set(all.filter(takeNews));
      const budgets = isDue ? all : [...news];
      if (budgets.length === 0) return;
      if (isDue) {
        writtenAt = startedAt;
        noted.clear();
      }
      const isNews = (budget: ListedBudget): boolean => news.has(budget);
      const zones = [...groups.values()].flat();
      const round: Round = { ...tools, fence, stop, zones, isNews, guardOf: createGuards(stop) };
      const mayBegin = (): boolean => clock.monotonic() - startedAt < BEGIN_FOR_MS;
      await visitEach(inTurn(budgets, clock.now()), { atOnce: AT_A_TIME, signal: stop }, async (budget) => {
        if (mayBegin()) await writeOne(budget, round).catch((error: unknown) => explain(error, budget, round));
      });
    },
  };
}

/**
 * Orders the budgets anew every 30 s: if the time is too short for all, each gets its share of the rounds. The order
 * depends on the wall clock, as a process lives for two rounds.
 */
function inTurn(budgets: readonly ListedBudget[], now: number): readonly ListedBudget[] {
  const round = Math.floor(now / EVERY_MS);
  const placed = budgets.map((budget) => ({ budget, place: spreadHash(`${round} ${budget.ref.uid}`) }));
  return placed.toSorted((a, b) => a.place - b.place).map(({ budget }) => budget);
}

/** A definition may have no status to write to. */
function explain(error: unknown, { ref: { namespace, name } }: ListedBudget, { log }: Round): void {
  logUnwritten(log, "the status of a disruption budget could not be written", { namespace, budget: name, error });
}

async function writeOne(budget: ListedBudget, round: Round): Promise<void> {
  // Reading its pattern takes milliseconds: the event loop runs other work between two budgets.
  await setImmediate();
  const { content, object, ref } = budget;
  const zones = await selectZones(budget, round);
  const guard = await round.guardOf(ref.namespace);
  // A question that the end of the session has cut off says nothing about the webhook.
  if (round.stop.aborted) return;
  const earlier = (object.status ?? {}) as Partial<Protection>;
  const reservations = readReservations(object.status?.disruptedPods);
  const { generation = 0 } = object.metadata;
  const next = describeProtection({ content, generation, zones, reservations, now: round.clock.now(), guard, earlier });
  const after = { ...object.status, ...next };
  // The write is bound to the version that was read: a reservation that was made since then stays.
  const change = {
    object: readIdentity(object.metadata),
    before: object.status ?? {},
    after,
    by: { kind: ref.kind },
  };
  await writeStatus<typeof object, object>(disruptionBudgets, change, round);
}

/**
 * The StatefulSets that it selects, and orphaned zones. A budget that selects no zone of a group costs a list of
 * StatefulSets. Its pods are listed only while orphaned zones are likely: its spec is new, or its status names a zone
 * whose StatefulSet it does not select any more, or one that was orphaned.
 */
async function selectZones(budget: ListedBudget, round: Round): Promise<readonly Zone[]> {
  const { matchLabels, object, ref } = budget;
  if (!matchLabels) return [];
  const query = { namespace: ref.namespace, labelSelector: selectorText({ matchLabels }) };
  const call = { deadlineMs: CALL_MS, signal: round.stop };
  const grouped = round.zones.filter(
    (zone) => zone.namespace === ref.namespace && matchesLabels(matchLabels, zone.labels),
  );
  const sets =
    grouped.length > 0
      ? grouped
      : (await readAll({ resource: statefulSets, query, read: readZone }, round, call)).items;
  const { zones: before = [] } = (object.status ?? {}) as Partial<Protection>;
  const isLost = ({ name, orphaned }: Protection["zones"][number]): boolean =>
    orphaned === true || !sets.some((set) => set.name === name);
  if (!round.isNews(budget) && !before.some(isLost)) return sets.toSorted(byName);
  const { items } = await readAll({ resource: pods, query, read: readPod }, round, call);
  const orphans = await findOrphans(items, sets, { ...round, call });
  return [...sets, ...orphans].toSorted(byName);
}
