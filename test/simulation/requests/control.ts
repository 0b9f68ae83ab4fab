/**
 * What a cluster with the declarative eviction API has beside the kind: the controller that gives responders their turns,
 * the responder that calls `pods/eviction`, and what the API server refuses.
 *
 *   Active --completionTime, or withdrawn, or no heartbeat for 20 minutes--> the next one's turn, or the end --END_MS--> gone
 */
import { evictionOf, advanceEviction, EVICTOR } from "../../reconciler/evictions/play.ts";
import {
  EVICTION_DEFINITION,
  EVICTIONS,
  type Entry,
  type EvictionStatus,
  refusals,
} from "../../reconciler/evictions/definition.ts";
import { RESPONDER } from "../../../reconciler/evictions/eviction.ts";
import { invalid } from "../../emulator/api-error.ts";
import type { Api } from "../../emulator/api.ts";
import { dig, type Draft, textOf, timestamp } from "../../emulator/objects.ts";
import type { KubeObject, Store } from "../../emulator/store.ts";
import type { Draw } from "../draw.ts";
import { NAMESPACE } from "../names.ts";
import type { Schedule } from "../schedule.ts";
import type { createNetwork } from "../network.ts";

export { EVICTION_DEFINITION, EVICTIONS, EVICTOR, RESPONDER, type Entry, type EvictionStatus };

/** Somebody else's, which has its turn before ours and is done after a while. */
export const OTHER = "drainer.example/prepare";

export interface RequestControlOptions {
  readonly store: Store;
  readonly schedule: Schedule;
  readonly draw: Draw;
  readonly ask: ReturnType<typeof createNetwork>["ask"];
  /** By how much its clock is ahead. */
  readonly aheadMs: number;
}

const PODS = `/api/v1/namespaces/${NAMESPACE}/pods`;
const LOOK_MS = 5000;
/** Between two calls of `pods/eviction`. */
const AGAIN_MS = 10_000;
/** Between the end of an Eviction and its deletion. */
const END_MS = 30_000;

export const statusOf = (eviction: KubeObject): EvictionStatus => eviction["status"] ?? {};
export const targetOf = (eviction: KubeObject): { readonly name: string; readonly uid: string } => ({
  name: textOf(dig(eviction, "spec", "target", "pod", "name")) ?? "",
  uid: textOf(dig(eviction, "spec", "target", "pod", "uid")) ?? "",
});
export const isOver = ({ conditions = [] }: EvictionStatus): boolean => conditions.length > 0;
/** Whose turn it is. */
export const activeOf = ({ targetResponders = [] }: EvictionStatus): string | undefined =>
  targetResponders.find(({ state }) => state === "Active")?.name;

/** The Eviction of a pod, as it is made of somebody's request. */
export function requestOf({ metadata: { name, uid } }: KubeObject, now: number, responders: readonly string[]): Draft {
  const eviction = evictionOf({ name, uid }, now, responders);
  return { ...eviction, metadata: { ...eviction.metadata, namespace: NAMESPACE } };
}

export function startRequestControl({ store, schedule, draw, ask, aheadMs }: RequestControlOptions): void {
  const triedAt = new Map<string, number>();
  const endedAt = new Map<string, number>();
  schedule.after(LOOK_MS, look);

  function look(): void {
    schedule.after(LOOK_MS, look);
    for (const eviction of store.list(EVICTIONS, NAMESPACE)) control(eviction);
  }

  function control(eviction: KubeObject): void {
    const [now, { name }, target] = [schedule.now() + aheadMs, eviction.metadata, targetOf(eviction)];
    const isGone = store.get("pods", NAMESPACE, target.name)?.metadata.uid !== target.uid;
    const before = statusOf(eviction);
    if (isOver(before)) return end(name, now);
    const active = activeOf(before);
    const isDone = (active === EVICTOR && isGone) || (active === OTHER && draw.chance(0.3));
    const at = timestamp(now);
    const told = isDone ? { completionTime: at } : active === EVICTOR ? { heartbeatTime: at } : undefined;
    const next = advanceEviction(told ? withEntry(before, active ?? "", told) : before, now, isGone);
    if (next !== before) store.update(EVICTIONS, { ...eviction, status: next });
    if (activeOf(next) === EVICTOR && !isGone && now - (triedAt.get(name) ?? 0) >= AGAIN_MS) evict(name, target, now);
  }

  function evict(name: string, { name: pod, uid }: ReturnType<typeof targetOf>, now: number): void {
    triedAt.set(name, now);
    const body = {
      apiVersion: "policy/v1",
      kind: "Eviction",
      metadata: { name: pod, namespace: NAMESPACE },
      deleteOptions: { preconditions: { uid } },
    };
    void ask("evictor", "POST", `${PODS}/${pod}/eviction`, body);
  }

  function end(name: string, now: number): void {
    if (!endedAt.has(name)) endedAt.set(name, now);
    if (now - (endedAt.get(name) ?? now) >= END_MS) store.remove(EVICTIONS, NAMESPACE, name);
  }
}

const withEntry = (status: EvictionStatus, name: string, told: Partial<Entry>): EvictionStatus => ({
  ...status,
  responders: (status.responders ?? []).map((one) => (one.name === name ? { ...one, ...told } : one)),
});

/** Refuses what the API server of the kind would; `onRefusal` is told why, in sentences. */
export function refuseUnfit(api: Api, onRefusal: (why: readonly string[]) => void): Api {
  const { validate } = api.admission;
  return {
    ...api,
    admission: {
      ...api.admission,
      async validate(request, attributes) {
        const { object, oldObject } = attributes;
        if (request.resource === EVICTIONS && request.subresource === "status") {
          const [before, after] = [oldObject, object].map((one) => (one?.["status"] ?? {}) as EvictionStatus);
          const why = refusals(before ?? {}, after ?? {}, api.clock.now());
          if (why.length > 0) onRefusal(why);
          const causes = why.map((message) => ({ reason: "FieldValueInvalid", message, field: "status.responders" }));
          if (why.length > 0) throw invalid({ kind: "Eviction", group: "lifecycle.k8s.io" }, request.name, causes);
        }
        await validate(request, attributes);
      },
    },
  };
}
