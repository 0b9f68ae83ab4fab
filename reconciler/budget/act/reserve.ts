/**
 * From a request to disrupt pods to its verdict, for the eviction webhook and the reconciler alike: no budget is spent
 * twice, however many processes decide (§13.1).
 *
 *   read the pod and the budgets -> the budget that selects it -> its queue (decide-together.ts) -> allowed or denied
 *   another process wrote first, or the API server fails for now -> random pause -> again, until the deadline: "not now"
 */
import { absent, isTransient } from "../../../infra/errors.ts";
import type { Call } from "../../../infra/kubernetes/cluster.ts";
import { disruptionBudgets } from "../../../infra/kubernetes/custom-resources.ts";
import { pods } from "../../../infra/kubernetes/resources.ts";
import { retryOnConflict } from "../../../infra/kubernetes/retry-on-conflict.ts";
import type { ObjectRef } from "../../model/decision.ts";
import type { Zone } from "../../model/zone.ts";
import { readPod } from "../../model/pod.ts";
import { isSame, type ReservationHandle } from "../reservation.ts";
import { findBudget, findBudgetsOfZone } from "../zpdb.ts";
import { type DisruptionResult, judged, NOT_NOW, undecided, verdict, type Verdict } from "../verdict.ts";
import { createDecideTogether, type DisruptionRequest, remaining, type ReserverTools } from "./decide-together.ts";
import { listBudgets, openReservationStore } from "./budget-store.ts";

export interface Reserver {
  /** Never rejects. */
  readonly reserve: (request: DisruptionRequest) => Promise<DisruptionResult>;
  /** Reserves a downscale on each budget that selects the StatefulSet (§5.11), or on none. Never rejects. */
  readonly reserveDownscale: (downscale: TimedDownscale) => Promise<DisruptionResult>;
  /**
   * Releases a reservation whose pod could not be deleted, or whose downscale was refused; a later one of the same pod
   * stays. Never rejects: a reservation that is not released expires.
   */
  readonly release: (handle: ReservationHandle, call: Call) => Promise<void>;
}

type TimeLimit = Pick<DisruptionRequest, "deadlineAt" | "signal">;

/** A StatefulSet that is to have `to` replicas. */
interface TimedDownscale extends TimeLimit {
  readonly zone: Pick<Zone, "kind" | "namespace" | "name" | "uid" | "labels" | "textProblem" | "firstOrdinal">;
  readonly to: number;
  /** Reserved even if budgets deny it (§2.3). */
  readonly forced: boolean;
}

interface ReserverOptions extends ReserverTools {
  readonly random: () => number;
}

/** Milliseconds: the upper bound of the first pause, which doubles each time. Random, so that processes part. */
const FIRST_PAUSE_MS = 20;
const MAX_PAUSE_MS = 500;
/** Milliseconds to release what was reserved for a downscale that another budget denies. */
const RELEASE_MS = 3000;
const MAX_READ_MS = 60_000;
const MAX_HINTS = 10_000;

export function createReserver(tools: ReserverOptions): Reserver {
  const { cluster, clock, random } = tools;
  const decideTogether = createDecideTogether(tools);
  /**
   * By StatefulSet, the budget that its pods were last under, or that is being looked for: it saves the reads that find
   * the budget. A wrong hint costs calls and no more, as the budget's own list has to have the pod.
   */
  const hints = new Map<string, Promise<ObjectRef | undefined>>();

  const callUntil = (time: TimeLimit): Call => ({
    deadlineMs: Math.min(remaining(time, clock), MAX_READ_MS),
    ...(time.signal && { signal: time.signal }),
  });

  /** The valid budget that selects the pod, or the result without one. Rejects with the error of the API server. */
  async function search(request: DisruptionRequest): Promise<ObjectRef | DisruptionResult> {
    const budgets = await listBudgets(request.namespace, tools, callUntil(request));
    if (request.rollout && budgets.length === 0)
      return judged(verdict("PodNotInScope", "there is no zoned pod disruption budget"));
    const object = await cluster.get(pods, request, callUntil(request)).catch(absent);
    if (!object) return judged(verdict("PodNotFound", `pods "${request.name}" not found`));
    const found = findBudget(readPod(object), budgets, request);
    return "reason" in found ? judged(found) : found;
  }

  async function ask(request: DisruptionRequest): Promise<DisruptionResult> {
    if (remaining(request, clock) <= 0) return undecided();
    const set = statefulSetOf(request);
    // Without a pause where there is none: of requests of the same moment, the first looks for all.
    const hint = hints.has(set) ? await hints.get(set) : undefined;
    const hinted = hint ? await decideTogether(request, hint) : "elsewhere";
    if (hinted !== "elsewhere") return hinted;
    const searching = search(request).catch(undecided);
    if (hints.size >= MAX_HINTS) hints.clear();
    hints.set(
      set,
      searching.then((found) => ("outcome" in found ? undefined : found)),
    );
    const found = await searching;
    if ("outcome" in found) return found;
    const result = await decideTogether(request, found);
    // The pod was made, or came under another budget, a moment ago.
    return result === "elsewhere" ? undecided() : result;
  }

  /** Asks until there is a verdict, a fault that time does not cure, or no time left. */
  async function untilDecided(time: TimeLimit, attempt: () => Promise<DisruptionResult>): Promise<DisruptionResult> {
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, MAX_PAUSE_MS)) {
      const result = await attempt();
      if (result.outcome !== "undecided" || !isTransient(result.cause)) return result;
      await clock.sleep(Math.min(random() * pauseMs, remaining(time, clock)), time.signal);
      if (remaining(time, clock) <= 0) return result;
    }
  }

  async function findBudgets({ zone, forced, ...time }: TimedDownscale): Promise<readonly ObjectRef[] | Verdict> {
    const budgets = await listBudgets(zone.namespace, tools, callUntil(time));
    const found = findBudgetsOfZone(zone, budgets, forced);
    return "reason" in found ? found : found.map(({ ref }) => ref);
  }

  async function reserveDownscale(downscale: TimedDownscale): Promise<DisruptionResult> {
    const found = await findBudgets(downscale).catch(undecided);
    if ("outcome" in found) return found;
    if ("reason" in found) return judged(found);
    const { zone, to, forced, ...time } = downscale;
    const { namespace, name, uid } = zone;
    const request = {
      namespace,
      name,
      downscale: { uid, from: zone.firstOrdinal + to, forced },
      dryRun: false,
      ...time,
    };
    const handles: ReservationHandle[] = [];
    for (const budget of found) {
      const result = await untilDecided(time, async () => {
        const one = await decideTogether(request, budget);
        return one === "elsewhere" ? judged(NOT_NOW) : one;
      });
      if (result.outcome !== "allowed") {
        for (const earlier of handles) await release(earlier, { deadlineMs: RELEASE_MS });
        return result;
      }
      handles.push(...result.handles);
    }
    return judged(verdict("Allowed", `allowed by ${found.length} disruption budgets`, [zone]), handles);
  }

  async function release(handle: ReservationHandle, call: Call): Promise<void> {
    const { namespace, budget: name, key } = handle;
    const tryOnce = async (): Promise<void> => {
      const budget = await cluster.get(disruptionBudgets, { namespace, name }, call);
      const store = await openReservationStore(cluster, budget, call);
      const { [key]: found, ...others } = store.reservations;
      if (isSame(found, handle)) await store.write(others, call);
    };
    await retryOnConflict(tryOnce, { clock, call }).catch(() => {});
  }

  return { reserve: (request) => untilDecided(request, () => ask(request)), reserveDownscale, release };
}

/** The pod's StatefulSet, by the pod's name; the pod itself if a StatefulSet's pod cannot have the name. */
const statefulSetOf = ({ namespace, name }: { readonly namespace: string; readonly name: string }): string =>
  `${namespace}/${name.replace(/-\d+$/, "")}`;
