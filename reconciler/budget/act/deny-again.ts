/**
 * Denies an eviction without a list, if the pods that blocked the budget when it was last read whole still block it:
 * one read each of the pod, the budget and the blocking pods. Concurrent requests share reads of the same object.
 */
import type { Call, Cluster } from "../../../infra/kubernetes/cluster.ts";
import { absent } from "../../../infra/errors.ts";
import { disruptionBudgets } from "../../../infra/kubernetes/custom-resources.ts";
import { pods, statefulSets } from "../../../infra/kubernetes/resources.ts";
import type { DisruptionRequest, ReserverTools } from "./disruption-request.ts";
import { planDenialCheck, type DenialCheck, checkDenial, type Reread, type BlockingPod } from "../denial-cache.ts";
import { readBudgetPod } from "../budget-pod.ts";
import { livingReservations, type Reservations } from "../reservation.ts";
import { findBudget } from "../scope.ts";
import { verdict, type Verdict } from "../verdict.ts";
import { BUDGET_KIND, type Budget } from "../zpdb.ts";
import { openReservationStore } from "./reservation-store.ts";
import { readZone } from "../../model/zone.ts";

/** Milliseconds after which the whole budget is read again: zones and budgets may have been added or removed. */
const LASTS_MS = 60_000;
/** More reads would cost as much as a list. */
const MAX_READS = 4;

/**
 * Resolves with undefined if only the whole budget can tell; rejects with the error of the API server. `deadlineMs` in
 * milliseconds.
 */
type DenyAgain = (request: DisruptionRequest, deadlineMs: number) => Promise<Verdict | undefined>;

export function createDenyAgain(tools: ReserverTools): DenyAgain {
  const { clock, memory } = tools;
  const cluster = shareReads(tools.cluster);

  async function reread(namespace: string, blocker: BlockingPod, call: Call): Promise<Reread> {
    const found = await cluster.get(pods, { namespace, name: blocker.pod }, call).catch(absent);
    if (found) return { blocker, pod: readBudgetPod(found) };
    const zone = await cluster.get(statefulSets, { namespace, name: blocker.zone.name }, call).catch(absent);
    return { blocker, pod: undefined, zone: zone && readZone(zone) };
  }

  /** The reservations of the budget; undefined if the budget has changed since it was read. */
  async function readReservations(
    { namespace, name, uid, generation }: Budget,
    call: Call,
  ): Promise<Reservations | undefined> {
    const found = await cluster.get(disruptionBudgets, { namespace, name }, call).catch(absent);
    if (found?.metadata.uid !== uid || found.metadata.generation !== generation) return undefined;
    return (await openReservationStore(cluster, found, call)).reservations;
  }

  async function check(
    request: DisruptionRequest,
    budget: Budget,
    { planned, call }: { planned: DenialCheck; call: Call },
  ): Promise<Verdict | undefined> {
    const [reserved, object, ...blocking] = await Promise.all([
      readReservations(budget, call),
      tools.cluster.get(pods, request, call).catch(absent),
      ...planned.blocking.map((blocker) => reread(request.namespace, blocker, call)),
    ]);
    if (!object) return verdict("PodNotFound", `pods "${request.name}" not found`);
    const pod = readBudgetPod(object);
    if (!reserved || pod.owner !== planned.own.uid) return undefined;
    const ref = { kind: BUDGET_KIND, namespace: budget.namespace, name: budget.name, uid: budget.uid } as const;
    const found = findBudget(pod, [{ ref, content: budget, matchLabels: budget.matchLabels }], request);
    if ("reason" in found) return found.reason === "PodNotInScope" ? undefined : found;
    const uids = new Set(blocking.flatMap((one) => one.pod?.uid ?? []));
    const now = clock.now();
    const message = checkDenial(planned, blocking, {
      now,
      budget,
      // Pods that a downscale removes are not read again.
      reservations: livingReservations(reserved, { pods: uids, zones: [] }, now),
    });
    return message === undefined
      ? undefined
      : verdict(planned.needed === 0 ? "MaxUnavailableZero" : "BudgetSpent", message, [pod, ref]);
  }

  return async (request, deadlineMs) => {
    const cached = memory.denialOf(request);
    if (!cached || clock.monotonic() - cached.at > LASTS_MS) return undefined;
    const planned = planDenialCheck(request.name, cached, MAX_READS);
    return planned && check(request, cached.budget, { planned, call: { deadlineMs } });
  };
}

/** A cluster in which a read joins an earlier read of the same object that is still in flight. */
function shareReads(cluster: Cluster): Cluster {
  const inFlight = new Map<string, Promise<unknown>>();
  return {
    ...cluster,
    get: <T>(...[resource, ref, call]: Parameters<typeof cluster.get<T>>): Promise<T> => {
      const key = [resource.plural, ref.namespace, ref.name].join("/");
      const read = inFlight.get(key) ?? cluster.get(resource, ref, call).finally(() => inFlight.delete(key));
      inFlight.set(key, read);
      return read as Promise<T>;
    },
  };
}
