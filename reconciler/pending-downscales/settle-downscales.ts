/**
 * Ends downscales that are pending, beside the rollout (§4.3, §13.5): what happened is written on the StatefulSet, what never happened is taken back.
 *
 *   list the Leases in which one is pending -> may it still happen? next time
 *     -> take the Lease, look again -> write `last-downscale`; DELETE to pods that are prepared and stay -> release it without the note
 *
 * A pod that could not be told keeps the note, and is told again later, after ever longer pauses. A cluster with nothing pending costs one empty list every 30 s.
 */
import { randomUUID } from "node:crypto";
import { cancelled, startDeadline } from "../../infra/deadline.ts";
import { absent } from "../../infra/errors.ts";
import { type Lease, leases, statefulSets } from "../../infra/kubernetes/resources.ts";
import { visitEach } from "../../infra/slots.ts";
import { formatTimestamp } from "../../infra/timestamp.ts";
import { PENDING_SELECTOR, pendingOf, takeDownscaleLease } from "./downscale-lease.ts";
import type { PendingDownscale, PendingDownscales } from "../downscale/pending.ts";
import { settleDownscale } from "../downscale/settlement.ts";
import { readIdentity } from "../model/identity.ts";
import { readZone } from "../model/zone.ts";
import { type Due, type SettleBounds, settleOne, type SettleOptions } from "./settle-one.ts";

export interface SettleInput extends Omit<SettleBounds, "isOurs"> {
  /** "" stands for all namespaces. */
  readonly namespaces: readonly string[];
}

/** Settles what can be settled in some 5 s; never rejects. To be over before zones are read: a time that moves from the Lease to a StatefulSet could be missed. */
export type SettleDownscales = (input: SettleInput) => Promise<void>;

/** Milliseconds between two looks while nothing is pending, or pods could not be told. */
const LOOK_MS = 30_000;
/** Milliseconds of one call in which Leases are begun, and after which it is over but for releasing them: a tick comes after it. The rest has its turn next time. */
const BEGIN_MS = 1500;
const SETTLE_MS = 5000;
/** Notes of a Lease that are followed at a time; each costs requests. */
const MOST_NOTES = 100;
/** All that is done under a Lease is over so long before its time that it can still be released. */
const LEASE_MS = 10_000;
const RELEASE_MS = 3000;
const AT_ONCE = 8;

type Verdict = "wait" | "settled" | "failed";

export function createSettler(options: SettleOptions): SettleDownscales {
  const { cluster, clock, log } = options;
  let lookAgainAt = Number.NEGATIVE_INFINITY;
  /** The Leases that have had their turn, until all have. */
  const begun = new Map<string, Verdict>();

  return async ({ namespaces, fence, recorder, signal: stop }) => {
    const startedAt = clock.monotonic();
    if (startedAt < lookAgainAt) return;
    using deadline = startDeadline(SETTLE_MS, stop);
    const { signal } = deadline;
    let isCutShort = false;
    const settleTurn = async (lease: Lease): Promise<void> => {
      const key = `${lease.metadata?.namespace}/${lease.metadata?.name}`;
      if (begun.has(key)) return;
      isCutShort ||= clock.monotonic() - startedAt >= BEGIN_MS;
      if (isCutShort) return;
      try {
        begun.set(key, await settleLease(lease, { fence, recorder, signal }));
      } catch (error) {
        begun.set(key, "failed");
        if (stop.aborted) return;
        log.warn("a pending downscale could not be settled", { lease: lease.metadata?.name, namespace: lease.metadata?.namespace, error });
      }
    };
    try {
      for await (const items of listPending(namespaces, signal)) await visitEach(items, { atOnce: AT_ONCE, signal }, settleTurn);
    } catch (error) {
      if (!stop.aborted) log.warn("the Leases of pending downscales could not be listed", { error });
    }
    lookAgainAt = clock.monotonic();
    if (isCutShort || signal.aborted) return;
    const verdicts = new Set(begun.values());
    if (!verdicts.has("wait") || verdicts.has("failed")) lookAgainAt = startedAt + LOOK_MS;
    begun.clear();
  };

  /** The Leases in which a downscale is pending, page by page. */
  async function* listPending(namespaces: readonly string[], signal: AbortSignal): AsyncGenerator<readonly Lease[]> {
    for (const namespace of namespaces) {
      const query = { ...(namespace && { namespace }), labelSelector: PENDING_SELECTOR };
      for await (const { items } of cluster.list(leases, query, { signal })) yield items;
    }
  }

  async function settleLease(lease: Lease, around: Omit<SettleBounds, "isOurs">): Promise<Verdict> {
    const { namespace, name } = readIdentity(lease.metadata ?? {});
    const pending = pendingOf(lease);
    const due = await findDue(namespace, pending, around.signal);
    const [first] = due.keys();
    if (first === undefined) return judgeRest(pending);
    const claim = { namespace, lease: name, statefulSet: first, uid: `settle_${randomUUID()}`, durationMs: LEASE_MS, note: keep };
    // From before the write, whose answer may be late.
    using deadline = startDeadline(LEASE_MS - RELEASE_MS, around.signal, clock);
    const isOurs = (): boolean => !deadline.signal.aborted && deadline.remainingMs() > 0;
    const taken = await takeDownscaleLease(options, claim, around.fence.write());
    // A webhook has it: it knows better.
    if (!("release" in taken)) return "wait";
    let left = taken.noted;
    let isTold = true;
    try {
      for (const [statefulSet, one] of await findDue(namespace, taken.noted, deadline.signal)) {
        if (!isOurs()) throw cancelled(deadline.signal);
        const { isDone, note } = await settleDue(one, { ...around, signal: deadline.signal, isOurs });
        left = leave(left, statefulSet, note);
        isTold &&= isDone;
      }
    } finally {
      await taken.release(left);
    }
    if (!isTold) return "failed";
    return Object.keys(left).length > 0 ? "wait" : "settled";
  }

  /** Settles one, if its StatefulSet is still there, and resolves with the note that stays. */
  async function settleDue({ zone, pending, settlement }: Due, bounds: SettleBounds) {
    const isDone = !zone || (await settleOne({ zone, pending, settlement }, options, bounds));
    return { isDone, note: isDone ? settlement.rest : { ...pending, tried: formatTimestamp(clock.now()) } };
  }

  /** Those that can be settled, with their StatefulSets as they are. Rejects with `Cancelled` once `signal` fires, or with what the cluster says. */
  async function findDue(namespace: string, pending: PendingDownscales, signal: AbortSignal) {
    const due = new Map<string, Due>();
    for (const [name, one] of Object.entries(pending).slice(0, MOST_NOTES)) {
      if (signal.aborted) throw cancelled(signal);
      const zone = await cluster.get(statefulSets, { namespace, name }, { signal }).catch(absent);
      const settlement = settleDownscale(one, zone && readZone(zone), clock.now());
      if (settlement) due.set(name, { zone, pending: one, settlement });
    }
    return due;
  }
}

/** None is due yet: they may still happen, or are told again later. */
function judgeRest(pending: PendingDownscales): Verdict {
  return Object.values(pending).every(({ tried }) => tried !== undefined) ? "failed" : "wait";
}

const keep = (found: PendingDownscales): PendingDownscales => found;

function leave(pending: PendingDownscales, name: string, note: PendingDownscale | undefined): PendingDownscales {
  const { [name]: _, ...others } = pending;
  return note ? { ...others, [name]: note } : others;
}
