/** Evictions as clients of a cluster send them: a single one, a storm, a drain. */
import { hasCode, messageOf } from "../../../infra/errors.ts";
import { evictions, type Eviction } from "../../../infra/kubernetes/resources.ts";
import type { PodFact } from "../history.ts";
import { type Drill, statusOf } from "./context.ts";

/** Milliseconds for an answer: a webhook may take 10 s. */
const ANSWER_MS = 15_000;

/**
 * Sends one eviction, by name as `kubectl drain` does, or bound to the pod's UID; resolves with the answer's HTTP status, 0
 * without one. Never rejects.
 */
export async function evict(drill: Drill, pod: PodFact, { byName = false } = {}): Promise<number> {
  const { cluster, history, run, signal } = drill;
  const { name, zone, uid } = pod;
  const metadata = { namespace: run.namespace, name };
  const type = { apiVersion: "policy/v1", kind: "Eviction", metadata } as const;
  const body: Eviction = byName ? type : { ...type, deleteOptions: { preconditions: { uid } } };
  const id = history.entries.length;
  history.add({ what: "asked", id, byName, pod: { name, zone, uid } });
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

interface Storm extends Bounds {
  /** Half of the clients evict by name. */
  readonly byNames: boolean;
  /** True if the storm may evict this pod. */
  readonly takes: (pod: PodFact) => boolean;
}

/** Each client evicts pods at random, with pauses between half and one and a half of `pauseMs`. */
export async function storm(drill: Drill, { clients, tries, pauseMs, byNames, takes }: Storm): Promise<void> {
  const { clock, history, random, signal } = drill;
  const client = async (byName: boolean): Promise<void> => {
    for (let i = 0; i < tries && !signal.aborted; i++) {
      const up = [...history.pods.values()].filter((pod) => pod.state === "up" && takes(pod));
      const pod = up[Math.floor(random() * up.length)];
      if (pod) await evict(drill, pod, { byName });
      await clock.sleep(pauseMs * (0.5 + random()), signal);
    }
  };
  await Promise.all(Array.from({ length: clients }, (_, i) => client(byNames && i % 2 === 0)));
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
