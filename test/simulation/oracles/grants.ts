/**
 * Judges what whoever reserves must have read (§5.5, §5.6). A reservation is written on the version that was read before
 * the pods: so all that it was judged by is known, but for the pods.
 *
 *   what is reserved is stored -> a list of the pods is sent -> reserved on that version
 *
 * By zone, the rollout reserves no more pods that work than the budget allows, with those that are to go already, that
 * are missing, or that have the new template and are not ready. Others that wait for the same cure do not count.
 */
import { dig, textOf } from "../../emulator/objects.ts";
import type { KubeObject, StoreEvent } from "../../emulator/store.ts";
import { BUDGET, BUDGETS, LEASES, NAMESPACE, ordinalOf, zoneOf } from "../names.ts";
import type { Caller } from "../network.ts";
import { createSince } from "./past.ts";
import { type Shape } from "../shape.ts";
import { budgetOfLease, hasWorking, isEnding, isReady, replicasOf, reservedOn } from "./stored.ts";

export interface GrantSafetyOptions {
  readonly shape: Shape;
  readonly violated: (what: string) => void;
  readonly now: () => number;
}

const PODS_LIST = /\/pods(?:\?(?!.*watch=)|$)/;
const RESERVES = /^(?:webhooks|reconciler)-/;
/** Of who answers evictions. */
const EVICTION = /^webhook_/;
/** No zone has more pods. */
const MAX_PODS = 16;

const uidsOf = (object: KubeObject | undefined): ReadonlyMap<string, string> =>
  new Map(Object.entries(reservedOn(object)).map(([key, entry]) => [key, textOf(dig(entry, "uid")) ?? ""]));

/** Calls `violated` with what happened, in words. */
export function createGrantSafety({ shape, violated, now }: GrantSafetyOptions) {
  const since = createSince(now);
  const pods = new Map<string, KubeObject>();
  const sets = new Map<string, KubeObject>();
  let budget: KubeObject | undefined;
  /** When each process last sent a list of pods. */
  const listedAt = new Map<string, number>();
  /** By name of a budget, or of its Lease, when it was last stored. */
  const storedAt = new Map<string, number>();

  const isOutdated = ({ metadata }: KubeObject, set: KubeObject | undefined): boolean =>
    metadata.labels?.["controller-revision-hash"] !== dig(set, "status", "updateRevision");

  /** It is missing, or is on its way; what is outdated and not ready waits for its cure. */
  function isAway(name: string): boolean {
    const [set, pod] = [sets.get(zoneOf(name)), pods.get(name)];
    if (!set || ordinalOf(name) >= replicasOf(set)) return false;
    return pod === undefined || isEnding(pod) || (!isReady(pod) && !isOutdated(pod, set));
  }

  const namesOf = (zone: string): readonly string[] => Array.from({ length: MAX_PODS }, (_, i) => `${zone}-${i}`);

  function lookAt(zone: string): void {
    for (const name of namesOf(zone)) {
      const pod = pods.get(name);
      since.note(`${name} away`, isAway(name));
      since.note(`${name} works ${pod?.metadata.uid}`, pod !== undefined && hasWorking(pod));
    }
  }

  function onGranted(event: StoreEvent, fresh: ReadonlyMap<string, string>, { actor }: Caller): void {
    const { object, previous } = event;
    // What is kept on a Lease is written after the version of its budget has been proved to be the one that was read.
    const limit = Number(dig(event.resource === BUDGETS ? previous : budget, "spec", "maxUnavailable") ?? 0);
    const seen = listedAt.get(actor) ?? -Infinity;
    const working = [...fresh]
      .filter(([name, uid]) => since.before(`${name} works ${uid}`, seen))
      .map(([name]) => name);
    const earlier = uidsOf(previous);
    for (const zone of new Set(working.map(zoneOf))) {
      const going = namesOf(zone).filter((name) => {
        const uid = uidsOf(object).get(name);
        const isKept = uid !== undefined && earlier.get(name) === uid && pods.get(name)?.metadata.uid === uid;
        const isWanted = ordinalOf(name) < replicasOf(sets.get(zone));
        return !working.includes(name) && isWanted && (isKept || since.before(`${name} away`, seen));
      });
      const all = [...going, ...working.filter((name) => zoneOf(name) === zone)];
      if (limit > 0 && all.length > limit)
        violated(`${actor} reserves more pods of ${zone} than the ${limit} that its budget allows: ${all.join(", ")}`);
    }
  }

  function onReserved(event: StoreEvent, caller: Caller): void {
    const { object, previous } = event;
    const earlier = uidsOf(previous);
    const fresh = new Map([...uidsOf(object)].filter(([key]) => !earlier.has(key)));
    if (fresh.size === 0) return;
    const [stored, listed] = [storedAt.get(object.metadata.name) ?? -Infinity, listedAt.get(caller.actor) ?? -Infinity];
    if (listed < stored)
      violated(
        `${caller.actor} reserves ${[...fresh.keys()].join(", ")} by pods that it has listed ${stored - listed} ms before what it writes on was stored`,
      );
    const isOther = event.resource === BUDGETS && object.metadata.name !== BUDGET;
    const isNew = event.resource === LEASES && (storedAt.get(BUDGET) ?? -Infinity) > listed;
    if (shape.partitioned || !caller.actor.startsWith("reconciler") || isOther || isNew) return;
    const byRollout = [...fresh].filter(
      ([key]) => !key.endsWith("+") && !EVICTION.test(textOf(dig(reservedOn(object)[key], "by")) ?? ""),
    );
    onGranted(event, new Map(byRollout), caller);
  }

  return {
    onSent({ actor }: Caller, method: string, path: string): void {
      if (method === "GET" && PODS_LIST.test(path)) listedAt.set(actor, now());
    },
    onEvent(event: StoreEvent, caller: Caller | undefined): void {
      const { type, resource, object } = event;
      const { name, namespace } = object.metadata;
      if (namespace !== NAMESPACE) return;
      if (resource === BUDGETS || (resource === LEASES && budgetOfLease(name) !== undefined)) {
        if (caller && RESERVES.test(caller.actor) && type !== "DELETED") onReserved(event, caller);
        storedAt.set(name, now());
        if (name === BUDGET) budget = object;
      }
      const zone = resource === "pods" ? zoneOf(name) : name;
      if (!shape.zones.includes(zone) || !["pods", "statefulsets.apps"].includes(resource)) return;
      const all = resource === "pods" ? pods : sets;
      if (type === "DELETED") all.delete(name);
      else all.set(name, object);
      lookAt(zone);
    },
  };
}
