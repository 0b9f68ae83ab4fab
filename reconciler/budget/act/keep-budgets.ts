/**
 * Keeps disruption budgets, every 30 s beside the ticks: tells which are invalid, and writes the status of each if it has
 * changed: what it protects now (§5.10), and the reservations whose time is not over (§5.6).
 */
import { setImmediate } from "node:timers/promises";
import type { Clock } from "../../../infra/clock.ts";
import type { Call } from "../../../infra/kubernetes/cluster.ts";
import type { Context } from "../../../infra/kubernetes/context.ts";
import { disruptionBudgets } from "../../../infra/kubernetes/custom-resources.ts";
import { pods, statefulSets } from "../../../infra/kubernetes/resources.ts";
import { logUnwritten, writeStatus } from "../../../infra/kubernetes/write-status.ts";
import type { Log } from "../../../infra/log.ts";
import type { BudgetMetrics } from "../../../infra/metrics/metrics.ts";
import { once } from "../../../infra/once.ts";
import { visitEach } from "../../../infra/slots.ts";
import { spreadHash } from "../../../infra/hash.ts";
import { readIdentity } from "../../../infra/kubernetes/identity.ts";
import { byName } from "../../model/order.ts";
import { readPod } from "../../model/pod.ts";
import { matchesLabels, selectorText } from "../../model/label-selector.ts";
import { readZone, type Zone, type ZoneList } from "../../model/zone.ts";
import type { Recorder } from "../../report/act/reporter.ts";
import { findOrphans, readAll } from "../../snapshot/gather.ts";
import type { Guard } from "../guard.ts";
import { describeProtection, type Protection } from "../protection.ts";
import { livingReservations, readReservations } from "../reservation.ts";
import { type BudgetSource, listBudgets, type ListedBudget } from "./budget-store.ts";
import { readHooks, seeGuard } from "./see-guard.ts";

/** Keeps the budgets of these namespaces ("" for all), if 30 s have passed since it did so last. Never rejects. */
export type KeepBudgets = (
  namespaces: readonly string[],
  groups: ZoneList["groups"],
  context: Pick<Context, "fence" | "stop">,
) => Promise<void>;

interface KeeperTools extends BudgetSource {
  readonly clock: Pick<Clock, "now" | "monotonic">;
  readonly log: Log;
  readonly metrics: Pick<BudgetMetrics, "observed">;
  readonly emitEvents: Recorder["emitEvents"];
}

const EVERY_MS = 30_000;
const AT_A_TIME = 4;
/** Milliseconds: the limit of a call; after this time no further budget is begun. */
const CALL_MS = 5000;
const BEGIN_FOR_MS = 5000;

interface Round extends KeeperTools, Pick<Context, "fence" | "stop"> {
  readonly call: Call;
  readonly zones: readonly Zone[];
  readonly guardOf: (namespace: string) => Promise<Guard>;
}

export function createBudgetKeeper(tools: KeeperTools): KeepBudgets {
  const { cluster, clock } = tools;
  let keptAt = -Infinity;
  /** The generations that were seen, by UID: a definition may drop the status, which tells this otherwise. */
  const known = new Map<string, number>();

  function isNews({ ref, object: { metadata, status } }: ListedBudget): boolean {
    const { generation = 0 } = metadata;
    const isKnown = status?.observedGeneration === generation || known.get(ref.uid) === generation;
    known.set(ref.uid, generation);
    return !isKnown;
  }

  return async (namespaces, groups, { fence, stop }) => {
    const startedAt = clock.monotonic();
    if (startedAt - keptAt < EVERY_MS) return;
    keptAt = startedAt;
    const call = { deadlineMs: CALL_MS, signal: stop };
    const registered = once(() => readHooks({ cluster, call }));
    const guardOf = once(async (namespace: string) => seeGuard(namespace, await registered(), { cluster, call }));
    const round = { ...tools, fence, stop, call, zones: [...groups.values()].flat(), guardOf };
    const listOf = (namespace: string): Promise<readonly ListedBudget[]> =>
      listBudgets(namespace, tools, call).catch((error: unknown) => {
        if (!stop.aborted) tools.log.warn("the disruption budgets could not be read", { error });
        return [];
      });
    const lists = await Promise.all(namespaces.map(listOf));
    await visitEach(inTurn(lists.flat(), clock.now()), { atOnce: AT_A_TIME, signal: stop }, async (budget) => {
      if (clock.monotonic() - startedAt >= BEGIN_FOR_MS) return;
      // Reading its pattern takes milliseconds: the event loop runs other work between two budgets.
      await setImmediate();
      const { namespace, name } = budget.ref;
      // A definition may have no status to write to.
      await keep(budget, isNews(budget), round).catch((error: unknown) =>
        logUnwritten(tools.log, "the status of a disruption budget could not be written", {
          namespace,
          budget: name,
          error,
        }),
      );
    });
  };
}

/**
 * Orders the budgets anew every 30 s: if the time is too short for all, each gets its share of the rounds, whatever
 * another namespace has. The order depends on the wall clock, as a process lives for one round or two.
 */
function inTurn(budgets: readonly ListedBudget[], now: number): readonly ListedBudget[] {
  const round = Math.floor(now / EVERY_MS);
  const placed = budgets.map((budget) => ({ budget, place: spreadHash(`${round} ${budget.ref.uid}`) }));
  return placed.toSorted((a, b) => a.place - b.place).map(({ budget }) => budget);
}

/** `isNew`: nobody has seen its spec. */
async function keep(budget: ListedBudget, isNew: boolean, round: Round): Promise<void> {
  tell(budget, isNew, round);
  const { content, object, ref } = budget;
  const zones = await selectZones(budget, isNew, round);
  const guard = await round.guardOf(ref.namespace);
  // A question that the end of the session has cut off says nothing about the webhook.
  if (round.stop.aborted) return;
  const before = object.status ?? {};
  const now = round.clock.now();
  const { generation = 0 } = object.metadata;
  const earlier = before as Partial<Protection>;
  const protection = describeProtection({ content, generation, zones, now, guard, earlier });
  const living = livingReservations(readReservations(before.disruptedPods), undefined, now);
  const after = { ...before, ...protection, ...(before.disruptedPods !== undefined && { disruptedPods: living }) };
  // The write is bound to the version that was read: a reservation that was made since then stays.
  const change = { kind: ref.kind, object: readIdentity(object.metadata), before, after };
  await writeStatus<typeof object, object>(disruptionBudgets, change, round);
}

/** An invalid budget counts each time, as alerts use the rate; it is logged once a spec. */
function tell({ ref, content }: ListedBudget, isNew: boolean, { metrics, emitEvents, log }: Round): void {
  if (!("problem" in content)) return metrics.observed(isNew ? "updated" : "ignored");
  const { problem } = content;
  metrics.observed("invalid");
  const message = `no pod that it selects is evicted: ${problem}`;
  emitEvents([{ regarding: ref, type: "Warning", reason: "BudgetInvalid", message }]);
  if (isNew) log.error("a disruption budget is not valid", { namespace: ref.namespace, budget: ref.name, problem });
}

/**
 * The StatefulSets that it selects, and orphaned zones. A budget that selects no zone of a group costs a list of
 * StatefulSets. Its pods are listed only while orphaned zones are likely: its spec is new, or its status names a zone
 * whose StatefulSet it does not select any more, or one that was orphaned.
 */
async function selectZones(
  { matchLabels, object, ref }: ListedBudget,
  isNew: boolean,
  round: Round,
): Promise<readonly Zone[]> {
  if (!matchLabels) return [];
  const { call } = round;
  const query = { namespace: ref.namespace, labelSelector: selectorText({ matchLabels }) };
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
  if (!isNew && !before.some(isLost)) return sets.toSorted(byName);
  const { items } = await readAll({ resource: pods, query, read: readPod }, round, call);
  const orphans = await findOrphans(items, sets, { ...round, call });
  return [...sets, ...orphans].toSorted(byName);
}
