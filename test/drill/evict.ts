/** Evictions as clients of a cluster send them: a single one, those of several clients, a drain. */
import { type Clock, firstOfSignals } from "../../infra/clock.ts";
import { hasCode, messageOf, RolloutError } from "../../infra/errors.ts";
import type { Cluster } from "../../infra/kubernetes/cluster.ts";
import { evictions } from "../../infra/kubernetes/resources.ts";
import type { History, PodFact } from "./history.ts";
import type { Run } from "./plan.ts";

/** The tools of a stage. */
export interface Drill {
  readonly cluster: Cluster;
  readonly clock: Clock;
  readonly history: History;
  readonly run: Run;
  /** A number from 0 up to 1. */
  readonly random: () => number;
  /** Ends all work: fires at the end of the stage, of the drill, or at a Ctrl-C. */
  readonly signal: AbortSignal;
}

/** The HTTP status of a refused call; 0 without an answer. */
export const statusOf = (error: unknown): number => (error instanceof RolloutError ? error.status : undefined) ?? 0;

/** Milliseconds for an answer: a webhook may take 10 s. */
const ANSWER_MS = 15_000;

/** Sends one eviction, bound to the pod's UID; resolves with the answer's HTTP status, 0 without one. Never rejects. */
export async function evict(drill: Drill, pod: PodFact): Promise<number> {
  const { cluster, history, run, signal } = drill;
  const { name, zone, uid } = pod;
  const metadata = { namespace: run.namespace, name };
  const preconditions = { uid };
  const body = { apiVersion: "policy/v1", kind: "Eviction", metadata, deleteOptions: { preconditions } } as const;
  const id = history.entries.length;
  history.add({ what: "asked", id, pod: { name, zone, uid } });
  try {
    await cluster.create(evictions, { ...metadata, subresource: "eviction", body }, { deadlineMs: ANSWER_MS, signal });
    history.add({ what: "answered", id, status: 201, message: "" });
    return 201;
  } catch (error) {
    const status = statusOf(error);
    // A cancelled call has no answer to record.
    if (!hasCode(error, "Cancelled") && !signal.aborted)
      history.add({ what: "answered", id, status, message: messageOf(error) });
    return status;
  }
}

interface Bounds {
  readonly clients: number;
  /** Evictions of a client. */
  readonly tries: number;
  readonly pauseMs: number;
}

/**
 * Each client evicts pods that `takes` allows, at random, with pauses between half and one and a half of `pauseMs`, until
 * `over` fires. What was sent by then gets its answer, and a pod that goes is seen to go: one that went later would be
 * away in the next stage.
 */
export async function evictAtRandom(
  drill: Drill,
  { clients, tries, pauseMs, over }: Bounds & { readonly over: AbortSignal },
  takes: (pod: PodFact) => boolean,
): Promise<void> {
  const { clock, history, random, signal } = drill;
  const until = firstOfSignals(signal, over);
  const isUp = ({ name, uid }: PodFact): boolean => {
    const now = history.pods.get(name);
    return now?.uid === uid && now.state === "up";
  };
  const client = async (): Promise<void> => {
    for (let i = 0; i < tries && !until.aborted; i++) {
      const up = [...history.pods.values()].filter((pod) => pod.state === "up" && takes(pod));
      const pod = up[Math.floor(random() * up.length)];
      if (pod && (await evict(drill, pod)) === 201) await history.until(() => !isUp(pod), signal);
      await clock.sleep(pauseMs * (0.5 + random()), until);
    }
  };
  await Promise.all(Array.from({ length: clients }, client));
}

const isGone = (status: number): boolean => status === 201 || status === 404 || status === 409;

/** Evicts all pods of the zone, each repeatedly until it goes; false if one did not within its tries. */
export async function drain(drill: Drill, zone: string, { tries, pauseMs }: Omit<Bounds, "clients">): Promise<boolean> {
  const { clock, history, random, signal } = drill;
  const own = [...history.pods.values()].filter((pod) => pod.zone === zone);
  const isThere = ({ name, uid }: PodFact): boolean => history.pods.get(name)?.uid === uid;
  const drainOne = async (pod: PodFact): Promise<boolean> => {
    for (let i = 0; i < tries && !signal.aborted; i++) {
      if (!isThere(pod)) return true;
      if (isGone(await evict(drill, pod))) return await history.until(() => !isThere(pod), signal);
      await clock.sleep(pauseMs * (0.5 + random()), signal);
    }
    return false;
  };
  return (await Promise.all(own.map(drainOne))).every(Boolean);
}
