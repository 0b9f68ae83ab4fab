/** What reconcilers have read in their passes over the nodes, by their requests: each begins with a list of policies. */
import type { Caller } from "../network.ts";
import { isPass } from "./facts.ts";

const PODS_OF = /\/pods\?.*\bfieldSelector=spec\.nodeName(?:%3D|=)([^&]+)/;
/** Of one node, or of all whatever labels they have. */
const NODE = /^\/api\/v1\/nodes(?:\/([^/?]+))?(?:\?(?!.*labelSelector=)|$)/;
const VOLUME = /\/persistentvolumes\/([^/?]+)/;
const ALL = "";

export function createPassReads(now: () => number) {
  /** By actor when each of its lists of policies was sent. */
  const lists = new Map<string, number[]>();
  /** By actor and node when it was last asked for. */
  const askedAt = new Map<string, number>();
  /** By actor and node when its pods were last listed. */
  const podsListedAt = new Map<string, number>();
  /** By actor and volume when it was last told that it may not read it. */
  const refusedAt = new Map<string, number>();
  const bornAt = new Map<string, number>();

  /** When the pass began in which this was sent. */
  const begunAt = ({ actor, sentAt = now() }: Caller): number =>
    lists.get(actor)?.findLast((at) => at <= sentAt) ?? -Infinity;

  return {
    begunAt,
    /** When the actor was first heard of. */
    bornAt: (actor: string): number => bornAt.get(actor) ?? -Infinity,
    /** True if the pass has listed the pods of the node. */
    hasListedPods: (caller: Caller, node: string): boolean =>
      (podsListedAt.get(`${caller.actor} ${node}`) ?? -Infinity) >= begunAt(caller),
    /** True if the pass has been told that it may not read the volume. */
    mayNotRead: (caller: Caller, volume: string): boolean =>
      (refusedAt.get(`${caller.actor} ${volume}`) ?? -Infinity) >= begunAt(caller),
    /** True if the pass has asked for the node, or for all. */
    hasLookedFor: (caller: Caller, node: string): boolean =>
      [node, ALL].some((name) => (askedAt.get(`${caller.actor} ${name}`) ?? -Infinity) >= begunAt(caller)),
    /** A read, whatever its answer is. */
    onAnswered({ actor, sentAt = now() }: Caller, method: string, path: string, status = 200): void {
      const [, volume] = VOLUME.exec(path) ?? [];
      if (volume !== undefined && status === 403) refusedAt.set(`${actor} ${volume}`, sentAt);
      const found = NODE.exec(path);
      if (actor.startsWith("reconciler") && method === "GET" && found)
        askedAt.set(`${actor} ${found[1] ?? ALL}`, sentAt);
    },
    /** A request that took effect. */
    onRequest({ actor, sentAt = now() }: Caller, method: string, path: string): void {
      if (!actor.startsWith("reconciler")) return;
      if (!bornAt.has(actor)) bornAt.set(actor, sentAt);
      const [, node] = PODS_OF.exec(path) ?? [];
      if (node !== undefined) podsListedAt.set(`${actor} ${node}`, sentAt);
      if (method !== "GET" || !isPass(path)) return;
      const own = lists.get(actor) ?? [];
      lists.set(actor, own);
      own.push(sentAt);
    },
  };
}
