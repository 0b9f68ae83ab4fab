/** The observations and actions of a drill, in order: the judge knows nothing else. Pure. */
import type { PodObject } from "../../infra/kubernetes/resources.ts";
import type { StageName } from "./plan.ts";

/** A pod as the API server shows it. `up`: Ready, and not about to go. */
export interface PodFact {
  readonly name: string;
  /** The StatefulSet's name. */
  readonly zone: string;
  readonly ordinal: number;
  readonly uid: string;
  readonly revision: string;
  readonly state: "up" | "starting" | "leaving" | "gone";
}

export type Entry = {
  /** Milliseconds since the drill began. */
  readonly at: number;
} & (
  | { readonly what: "stage"; readonly stage: StageName; readonly state: "begins" | "ends" | "overdue" }
  /** A change of a pod; entries of this kind are in the API server's order. */
  | { readonly what: "pod"; readonly pod: PodFact }
  /** All pods, of a list. `gap`: changes before it were not seen. */
  | { readonly what: "pods"; readonly pods: readonly PodFact[]; readonly gap: boolean }
  /** An eviction is sent, bound to the UID of this pod. */
  | { readonly what: "asked"; readonly id: number; readonly pod: Pick<PodFact, "name" | "zone" | "uid"> }
  /** Its answer; status 0 without one. */
  | { readonly what: "answered"; readonly id: number; readonly status: number; readonly message: string }
  /** A downscale is tried; the answer's status is 200 if it was allowed. */
  | { readonly what: "scaled"; readonly by: string; readonly status: number; readonly message: string }
);

export interface History {
  readonly entries: readonly Entry[];
  /** The pods as they were last seen, those that are gone left out. */
  readonly pods: ReadonlyMap<string, PodFact>;
  readonly add: (entry: Omitted<Entry>) => void;
  /** Resolves with true once the condition holds, with false if `signal` fires before. */
  readonly until: (condition: () => boolean, signal: AbortSignal) => Promise<boolean>;
}

type Omitted<E> = E extends unknown ? Omit<E, "at"> : never;

export function createHistory(now: () => number): History {
  const startedAt = now();
  const entries: Entry[] = [];
  const pods = new Map<string, PodFact>();
  const waiting = new Set<() => void>();
  const keep = (pod: PodFact): void => void (pod.state === "gone" ? pods.delete(pod.name) : pods.set(pod.name, pod));
  return {
    entries,
    pods,
    add(entry) {
      entries.push({ at: now() - startedAt, ...entry });
      if (entry.what === "pods") pods.clear();
      if (entry.what === "pods") for (const pod of entry.pods) keep(pod);
      if (entry.what === "pod") keep(entry.pod);
      for (const check of waiting) check();
    },
    until: (condition, signal) =>
      new Promise((resolve) => {
        const end = (isMet: boolean): void => {
          waiting.delete(check);
          signal.removeEventListener("abort", giveUp);
          resolve(isMet);
        };
        const giveUp = (): void => end(condition());
        const check = (): void => void (condition() && end(true));
        waiting.add(check);
        signal.addEventListener("abort", giveUp, { once: true });
        if (signal.aborted) giveUp();
        else check();
      }),
  };
}

/** `isDeleted`: the watch has shown it for the last time. */
export function readFact({ metadata = {}, status = {} }: PodObject, isDeleted = false): PodFact {
  const { name = "", uid = "", labels = {} } = metadata;
  return {
    name,
    zone: name.slice(0, name.lastIndexOf("-")),
    ordinal: Number(name.slice(name.lastIndexOf("-") + 1)),
    uid,
    revision: labels["controller-revision-hash"] ?? "",
    state: isDeleted ? "gone" : stateOf(metadata, status),
  };
}

function stateOf(
  { deletionTimestamp }: NonNullable<PodObject["metadata"]>,
  { conditions = [] }: NonNullable<PodObject["status"]>,
): PodFact["state"] {
  if (deletionTimestamp) return "leaving";
  return conditions.some((one) => one.type === "Ready" && one.status === "True") ? "up" : "starting";
}
