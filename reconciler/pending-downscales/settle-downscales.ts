/**
 * Ends downscales that are pending, beside the rollout (§4.3, §13.5): what happened is written on the StatefulSet, what never happened is taken back.
 *
 *   list the Leases in which one is pending -> may it still happen? next time
 *     -> take the Lease, look again -> write `last-downscale`; DELETE to pods that are prepared and stay -> release it without the note
 *
 * A pod that could not be told keeps the note, and is told again later, after ever longer pauses. A cluster with nothing pending costs one empty list every 30 s.
 */
import { randomUUID } from "node:crypto";
import type { Clock } from "../../infra/clock.ts";
import type { Cluster } from "../../infra/kubernetes/cluster.ts";
import { cancelled, startDeadline } from "../../infra/deadline.ts";
import { absent, messageOf } from "../../infra/errors.ts";
import type { Fence } from "../../infra/kubernetes/lease.ts";
import type { Log } from "../../infra/log.ts";
import { type PodHttp, redactUrl } from "../../infra/pod-http.ts";
import { configMaps, type Lease, leases, type StatefulSet, statefulSets } from "../../infra/kubernetes/resources.ts";
import { visitEach } from "../../infra/slots.ts";
import { formatTimestamp } from "../../infra/timestamp.ts";
import { PENDING_SELECTOR, pendingOf, takeDownscaleLease } from "./downscale-lease.ts";
import { laterOf, type PendingDownscale, type PendingDownscales } from "../downscale/pending.ts";
import { type Settlement, settleDownscale } from "../downscale/settlement.ts";
import { endpointsOf, readPreparation } from "../downscale/preparation.ts";
import type { Draft } from "../report/events.ts";
import { ANNOTATIONS } from "../model/annotations.ts";
import { restoreEntry } from "../model/tracker.ts";
import { type PodCalls, unpreparePods } from "./pod-calls.ts";
import type { Recorder } from "../report/recorder.ts";

export interface SettleOptions {
  readonly cluster: Cluster;
  readonly clock: Clock;
  readonly log: Log;
  readonly podHttp: PodHttp;
  readonly clusterDomain: string;
  /** Name of the zone tracker's ConfigMap. */
  readonly zoneTracker: string;
}

export interface SettleInput {
  /** "" stands for all namespaces. */
  readonly namespaces: readonly string[];
  readonly fence: Fence;
  readonly recorder: Pick<Recorder, "record">;
  readonly signal: AbortSignal;
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
/** Milliseconds that telling the pods of one StatefulSet may take; webhooks of its group are refused meanwhile. */
const TELL_MS = 5000;
/** All that is done under a Lease is over so long before its time that it can still be released. */
const LEASE_MS = 10_000;
const RELEASE_MS = 3000;
const AT_ONCE = 8;

type Verdict = "wait" | "settled" | "failed";

export function createSettler({ cluster, clock, log, podHttp, clusterDomain, zoneTracker }: SettleOptions): SettleDownscales {
  let lookAgainAt = Number.NEGATIVE_INFINITY;
  /** The Leases that have had their turn, until all have. */
  const begun = new Map<string, Verdict>();

  return async ({ namespaces, fence, recorder, signal: stop }) => {
    const startedAt = clock.monotonic();
    if (startedAt < lookAgainAt) return;
    using deadline = startDeadline(SETTLE_MS, stop);
    const { signal } = deadline;
    let isCutShort = false;
    const settleOne = async (lease: Lease): Promise<void> => {
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
      for (const namespace of namespaces)
        for await (const { items } of cluster.list(
          leases,
          { ...(namespace && { namespace }), labelSelector: PENDING_SELECTOR },
          { signal },
        ))
          await visitEach(items, { atOnce: AT_ONCE, signal }, settleOne);
    } catch (error) {
      if (!stop.aborted) log.warn("the Leases of pending downscales could not be listed", { error });
    }
    lookAgainAt = clock.monotonic();
    if (isCutShort || signal.aborted) return;
    const verdicts = new Set(begun.values());
    if (!verdicts.has("wait") || verdicts.has("failed")) lookAgainAt = startedAt + LOOK_MS;
    begun.clear();
  };

  async function settleLease(lease: Lease, around: Pick<SettleInput, "fence" | "recorder" | "signal">): Promise<Verdict> {
    const { namespace = "", name = "" } = lease.metadata ?? {};
    const pending = pendingOf(lease);
    const due = await findDue(namespace, pending, around.signal);
    const [first] = due.keys();
    if (first === undefined) return Object.values(pending).every(({ tried }) => tried !== undefined) ? "failed" : "wait";
    const claim = { namespace, lease: name, statefulSet: first, uid: `settle_${randomUUID()}`, durationMs: LEASE_MS, note: keep };
    // From before the write, whose answer may be late.
    using deadline = startDeadline(LEASE_MS - RELEASE_MS, around.signal, clock);
    const isOurs = (): boolean => !deadline.signal.aborted && deadline.remainingMs() > 0;
    const taken = await takeDownscaleLease(cluster, claim, clock, around.fence.write());
    // A webhook has it: it knows better.
    if (!("release" in taken)) return "wait";
    let left = taken.noted;
    let isTold = true;
    try {
      for (const [statefulSet, { zone, pending, settlement }] of await findDue(namespace, taken.noted, deadline.signal)) {
        if (!isOurs()) throw cancelled(deadline.signal);
        const isDone = !zone || (await settle(zone, pending, settlement, { ...around, signal: deadline.signal, isOurs }));
        left = leave(left, statefulSet, isDone ? settlement.rest : { ...pending, tried: formatTimestamp(clock.now()) });
        isTold &&= isDone;
      }
    } finally {
      await taken.release(left);
    }
    return isTold ? (Object.keys(left).length > 0 ? "wait" : "settled") : "failed";
  }

  /** Those that can be settled, with their StatefulSets as they are. Rejects with `Cancelled` once `signal` fires, or with what the cluster says. */
  async function findDue(namespace: string, pending: PendingDownscales, signal: AbortSignal) {
    const due = new Map<string, { zone: StatefulSet | undefined; pending: PendingDownscale; settlement: Settlement }>();
    for (const [name, one] of Object.entries(pending).slice(0, MOST_NOTES)) {
      if (signal.aborted) throw cancelled(signal);
      const zone = await cluster.get(statefulSets, { namespace, name }, { signal }).catch(absent);
      const current = zone && {
        uid: zone.metadata?.uid ?? "",
        generation: zone.metadata?.generation ?? 0,
        replicas: zone.spec?.replicas ?? 1,
      };
      const settlement = settleDownscale(one, current, clock.now());
      if (settlement) due.set(name, { zone, pending: one, settlement });
    }
    return due;
  }

  /** False if a pod could not be told. Throws what the cluster says, `Conflict` if the StatefulSet has changed. */
  async function settle(
    zone: StatefulSet,
    { from, to, at }: PendingDownscale,
    { happened, lastDownscale, stay }: Settlement,
    { fence, recorder, signal, isOurs }: Pick<SettleInput, "fence" | "recorder" | "signal"> & Pick<PodCalls, "isOurs">,
  ): Promise<boolean> {
    const { namespace = "", name = "", uid = "", resourceVersion, annotations } = zone.metadata ?? {};
    const written = annotations?.[ANNOTATIONS.lastDownscale];
    if (lastDownscale !== undefined && laterOf(lastDownscale, written) === lastDownscale && lastDownscale !== written) {
      const body = { metadata: { resourceVersion, annotations: { [ANNOTATIONS.lastDownscale]: lastDownscale } } };
      await cluster.patch(statefulSets, { namespace, name }, "merge", body, fence.write());
    }
    if (!happened) await forgetTracked({ namespace, name: zoneTracker }, name, at, { fence, signal });
    const count = stay.to - stay.from;
    if (count === 0) return true;
    const preparation = readPreparation(zone);
    let problem = "problem" in preparation ? preparation.problem : undefined;
    const onFailure = (url: string, error: unknown): void => void (problem ??= `${redactUrl(url)}: ${messageOf(error)}`);
    const isTold =
      !("problem" in preparation) &&
      (await unpreparePods(
        { podHttp, namespace, endpoints: () => endpointsOf(preparation, stay.to, stay.from, clusterDomain), isOurs, onFailure },
        TELL_MS,
        signal,
      ));
    const regarding = { kind: "StatefulSet" as const, namespace, name, uid };
    const what = `the downscale of ${name} from ${from} to ${to} replicas, admitted at ${at}, is not in effect`;
    const told = `${what}: its ${count} prepared pods were told that they stay`;
    const untold = `${what}, and not all of its ${count} prepared pods could be told that they stay: ${problem ?? "not in time"}`;
    const draft: Draft = isTold
      ? { regarding, type: "Normal", reason: "DownscaleUndone", message: told }
      : { regarding, type: "Warning", reason: "DownscaleNotUndone", message: untold, cause: what };
    recorder.record([draft]);
    log[isTold ? "info" : "warn"](draft.message, { namespace, statefulSet: name });
    return isTold;
  }

  /** Takes the time of a downscale that never happened out of the zone tracker. Throws what the cluster says. */
  async function forgetTracked(
    ref: { readonly namespace: string; readonly name: string },
    statefulSet: string,
    at: string,
    { fence, signal }: Pick<SettleInput, "fence" | "signal">,
  ): Promise<void> {
    // Read while the Lease is ours: a webhook that has it after us may write a time that must stay.
    const found = await cluster.get(configMaps, ref, { signal }).catch(absent);
    const data = restoreEntry(found?.data, statefulSet, at);
    if (found && data) await cluster.replace(configMaps, ref, { ...found, data }, fence.write());
  }
}

const keep = (found: PendingDownscales): PendingDownscales => found;

function leave(pending: PendingDownscales, name: string, note: PendingDownscale | undefined): PendingDownscales {
  const { [name]: _, ...others } = pending;
  return note ? { ...others, [name]: note } : others;
}
