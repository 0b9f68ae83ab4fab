/**
 * Writes the protection of each disruption budget into its status (§5.10) when it has changed, beside the ticks, for
 * the budgets that the tick has read anyway. A budget that is new or has another spec is written at once, every other
 * every 30 s at most. Statuses that need no pods are written first. If the pods were not read, because of an error or
 * for lack of time, the status is written without the number of allowed evictions.
 */
import { setImmediate } from "node:timers/promises";
import type { Clock } from "../../../infra/clock.ts";
import type { Cluster } from "../../../infra/kubernetes/cluster.ts";
import type { Context } from "../../../infra/kubernetes/context.ts";
import { disruptionBudgets } from "../../../infra/kubernetes/custom-resources.ts";
import { statefulSets } from "../../../infra/kubernetes/resources.ts";
import { logUnwritten, writeStatus } from "../../../infra/kubernetes/write-status.ts";
import type { Log } from "../../../infra/log.ts";
import { once } from "../../../infra/once.ts";
import { visitEach } from "../../../infra/slots.ts";
import type { BudgetZone } from "../../budget/budget-pod.ts";
import { describeProtection, needsPods, type Protection } from "../../budget/protection.ts";
import { askWebhook } from "../../budget/act/probe.ts";
import { readHooks, type GuardReading, type GuardSource } from "../../budget/act/read-guard.ts";
import { type EvictionHook, type Guard, judgeGuard, maySelect, type Probe } from "../../budget/guard.ts";
import { readReservations } from "../../budget/reservation.ts";
import { matchesLabels } from "../../budget/selector.ts";
import { readAll } from "../../snapshot/gather.ts";
import { spreadHash } from "../../model/hash.ts";
import { readIdentity } from "../../model/identity.ts";
import { byName } from "../../model/order.ts";
import { readZone, selectorText, type Zone, type ZoneList } from "../../model/zone.ts";
import { gatherUnderBudget, type ListedBudget } from "../../budget/act/gather-budget.ts";

export interface BudgetStatuses {
  /** The budgets of a namespace ("" for all), as they were just read; undefined if the cluster knows none. */
  readonly note: (scope: string, budgets: readonly ListedBudget[] | undefined) => void;
  /** Writes the changed statuses that are due. Never rejects. */
  readonly write: (groups: ZoneList["groups"], context: Pick<Context, "fence" | "stop">) => Promise<void>;
}

export interface BudgetStatusTools {
  readonly cluster: Cluster;
  readonly clock: Pick<Clock, "now" | "monotonic">;
  readonly log: Log;
  /** The chain that the webhooks serve, in PEM; rejects or undefined if it cannot be read. */
  readonly readServed?: GuardSource["readServed"];
}

const EVERY_MS = 30_000;
const AT_A_TIME = 4;
/** Milliseconds: the limit of a call; after this time no further budget is begun, and no further pods are read. */
const CALL_MS = 5000;
const BEGIN_FOR_MS = 5000;
/** Milliseconds for which the webhook's answer in a namespace counts: a process lives about as long. */
const PROBE_FOR_MS = 60_000;

/** A budget with the StatefulSets that it selects. */
interface Selected {
  readonly budget: ListedBudget;
  readonly zones: readonly Zone[];
}

/** The tools that the writes of one round share. */
interface Round extends BudgetStatusTools, Pick<Context, "fence" | "stop"> {
  readonly hooks: GuardReading;
  /** Asks the eviction webhook of a namespace, unless it has answered lately; by a dry-run eviction. */
  readonly probe: (zone: Pick<Zone, "namespace">) => Promise<Probe>;
}

export function createBudgetStatuses(tools: BudgetStatusTools): BudgetStatuses {
  const { clock } = tools;
  const noted = new Map<string, readonly ListedBudget[]>();
  /** The generations that were written at once, by UID: a definition may drop fields that it does not know. */
  const written = new Map<string, number>();
  /** When the webhook of a namespace has answered. */
  const answered = new Map<string, number>();
  let writtenAt = -Infinity;

  async function probe(namespace: string, hooks: readonly EvictionHook[], stop: AbortSignal): Promise<Probe> {
    if (clock.monotonic() - (answered.get(namespace) ?? -Infinity) < PROBE_FOR_MS) return { result: "answered" };
    const source = { cluster: tools.cluster, call: { deadlineMs: CALL_MS, signal: stop } };
    const found = await askWebhook(source, namespace, { hooks });
    if (found.result === "answered") answered.set(namespace, clock.monotonic());
    return found;
  }

  function isNews({ ref, object: { metadata, status } }: ListedBudget): boolean {
    const { generation = 0 } = metadata;
    if (status?.observedGeneration === generation || written.get(ref.uid) === generation) return false;
    written.set(ref.uid, generation);
    return true;
  }

  return {
    note: (scope, budgets) => void noted.set(scope, budgets ?? []),
    async write(groups, { fence, stop }) {
      const startedAt = clock.monotonic();
      const isDue = startedAt - writtenAt >= EVERY_MS;
      const budgets = [...noted.values()].flat().filter((budget) => isNews(budget) || isDue);
      if (budgets.length === 0) return;
      if (isDue) {
        writtenAt = startedAt;
        noted.clear();
      }
      const zones = [...groups.values()].flat();
      const namespaces = new Set(budgets.map(({ ref }) => ref.namespace));
      const matters = (hook: EvictionHook): boolean => [...namespaces].some((one) => maySelect(hook, one));
      const hooks = await readHooks({ ...tools, matters, call: { deadlineMs: CALL_MS, signal: stop } });
      const ask = once(
        async ({ namespace }: Pick<Zone, "namespace">) => await probe(namespace, hooks.hooks ?? [], stop),
        ({ namespace }) => namespace,
      );
      const round: Round = { ...tools, fence, stop, hooks, probe: ask };
      const counted: Selected[] = [];
      const hasTime = limitTime(clock);
      await visitEach(inTurn(budgets, clock.now()), { atOnce: AT_A_TIME, signal: stop }, async (budget) => {
        if (!hasTime()) return;
        const taking = await writeByZones(budget, zones, round);
        if (taking) counted.push(taking);
      });
      const hasTimeForPods = limitTime(clock);
      // One at a time: each may hold a thousand pods.
      await visitEach(counted, { atOnce: 1, signal: stop }, async (one) => {
        await tryWrite(one.budget, round, async () => {
          await writeOne(one, hasTimeForPods() ? await readPods(one, round) : undefined, round);
        });
      });
    },
  };
}

function limitTime({ monotonic }: Pick<Clock, "monotonic">): () => boolean {
  const begunAt = monotonic();
  return () => monotonic() - begunAt < BEGIN_FOR_MS;
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

async function tryWrite({ ref }: ListedBudget, { log }: Round, write: () => Promise<void>): Promise<void> {
  try {
    await write();
  } catch (error) {
    // A definition may have no status to write to.
    const { namespace, name } = ref;
    logUnwritten(log, "the status of a disruption budget could not be written", { namespace, budget: name, error });
  }
}

/** Writes the status if it needs no pods; otherwise resolves with the budget whose pods are to be counted. */
async function writeByZones(budget: ListedBudget, zones: readonly Zone[], round: Round): Promise<Selected | undefined> {
  let taking: Selected | undefined;
  await tryWrite(budget, round, async () => {
    // Reading its pattern takes milliseconds: the event loop runs other work between two budgets.
    await setImmediate();
    const selected = { budget, zones: await selectZones(budget, zones, round) };
    const { content, object } = budget;
    const reservations = readReservations(object.status?.disruptedPods);
    const known = { zones: selected.zones, reservations, now: round.clock.now() };
    if ("problem" in content || !needsPods(content, known)) await writeOne(selected, undefined, round);
    else taking = selected;
  });
  return taking;
}

/** Undefined if they cannot be read: the rest of the status does not depend on them. */
async function readPods({ budget }: Selected, round: Round): Promise<readonly BudgetZone[] | undefined> {
  const { content, ref } = budget;
  if ("problem" in content) return undefined;
  try {
    const { zones } = await gatherUnderBudget(content, round, { deadlineMs: CALL_MS, signal: round.stop });
    return zones;
  } catch (error) {
    if (round.stop.aborted) throw error;
    const { namespace, name } = ref;
    logUnwritten(round.log, "the evictions that a disruption budget allows could not be counted", {
      namespace,
      budget: name,
      error,
    });
    return undefined;
  }
}

async function writeOne(
  { budget, zones }: Selected,
  withPods: readonly BudgetZone[] | undefined,
  round: Round,
): Promise<void> {
  const { content, object, ref } = budget;
  const { namespace } = ref;
  const earlier = (object.status ?? {}) as Partial<Protection>;
  const reservations = readReservations(object.status?.disruptedPods);
  const { generation = 0 } = object.metadata;
  const guard = await seeGuard(namespace, zones, round);
  // A question that the end of the session has cut off says nothing about the webhook.
  if (round.stop.aborted) return;
  const now = round.clock.now();
  const next = describeProtection({ content, generation, zones, reservations, now, withPods, guard, earlier });
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

/** If the configuration alone shows that nothing guards the namespace, the webhook is not asked. */
async function seeGuard(namespace: string, [zone]: readonly Zone[], { hooks, probe }: Round): Promise<Guard> {
  // The reconciler reads no namespaces: it knows only the label with the name.
  const labels = { "kubernetes.io/metadata.name": namespace };
  const facts = { ...hooks, namespace, labels, labelsKnown: false };
  const guard = judgeGuard({ ...facts, probe: undefined });
  return guard.state === "unknown" && zone ? judgeGuard({ ...facts, probe: await probe(zone) }) : guard;
}

/** A budget that selects no zone of a group costs a list of StatefulSets. */
async function selectZones({ matchLabels, ref }: ListedBudget, zones: readonly Zone[], round: Round): Promise<Zone[]> {
  if (!matchLabels) return [];
  const grouped = zones.filter((zone) => zone.namespace === ref.namespace && matchesLabels(matchLabels, zone.labels));
  if (grouped.length > 0) return grouped.toSorted(byName);
  const query = { namespace: ref.namespace, labelSelector: selectorText({ matchLabels }) };
  const call = { deadlineMs: CALL_MS, signal: round.stop };
  return (await readAll({ resource: statefulSets, query, read: readZone }, round, call)).items.toSorted(byName);
}
