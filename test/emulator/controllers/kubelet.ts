/**
 * The kubelets: pods become Running, Ready and gone as their `sim/*` annotations say (see the README of the emulator's real counterpart):
 *
 *   sim/ready-after-ms  from bound to Ready, 300      sim/ready  "false" keeps it not Ready, followed at any time
 *   sim/exit-after-ms   from deletion to gone, 100    sim/crash  "true" makes its containers wait in CrashLoopBackOff
 *
 *   bound --report--> Running, not Ready --ready-after-ms--> Ready <--sim/ready--> not Ready      deleted --exit-after-ms--> gone
 */
import type { Clock } from "../clock.ts";
import { timestamp } from "../objects.ts";
import type { Store } from "../store.ts";
import { isTerminating, type Pod } from "./objects.ts";
import { areGatesOpen, reportPod } from "./pod-status.ts";
import { createQueue } from "./queue.ts";

const REACTION_MS = 1;
const READY_AFTER_MS = 300;
const EXIT_AFTER_MS = 100;

/** What a kubelet knows of one pod. */
interface Known {
  readonly ip: string;
  /** Containers are up and pass their probes. */
  up: boolean;
  starting: boolean;
  ending: boolean;
  /** The facts of the last report. */
  reported: string;
  readonly timers: Set<() => void>;
}

/** Runs until the answer is called. */
export function runKubelets(store: Store, clock: Clock): () => void {
  const known = new Map<string, Known>();
  let lastIp = 0;

  const remember = (uid: string): Known => {
    const before = known.get(uid);
    if (before) return before;
    lastIp += 1;
    const ip = `10.244.${(lastIp >> 8) & 255}.${lastIp & 255}`;
    const state = { ip, up: false, starting: false, ending: false, reported: "", timers: new Set<() => void>() };
    known.set(uid, state);
    return state;
  };

  const later = (state: Known, ms: number, run: () => void): void => {
    const cancel = clock.after(ms, () => {
      state.timers.delete(cancel);
      run();
    });
    state.timers.add(cancel);
  };

  const queue = createQueue(clock, REACTION_MS, (key) => {
    const [namespace, name = "", uid] = key.split("/");
    const pod = store.get("pods", namespace, name) as Pod | undefined;
    if (!pod || pod.metadata.uid !== uid) return;
    const state = remember(uid);
    if (isTerminating(pod)) return end(pod, state);
    if (!pod.spec.nodeName || pod.status.phase === "Succeeded" || pod.status.phase === "Failed") return;
    if (!isMeantToBeUp(pod)) state.up = false;
    else if (!state.up && !state.starting) start(key, pod, state);
    const facts = { ip: state.ip, up: state.up, gatesOpen: areGatesOpen(pod), crashing: annotation(pod, "crash") === "true" };
    // A kubelet reports its own news; what others write to the status it leaves alone until then.
    if (JSON.stringify(facts) === state.reported) return;
    state.reported = JSON.stringify(facts);
    store.update("pods", { ...pod, status: reportPod(pod, facts, timestamp(clock.now())) });
  });

  const start = (key: string, pod: Pod, state: Known): void => {
    state.starting = true;
    later(state, Number(annotation(pod, "ready-after-ms") ?? READY_AFTER_MS), () => {
      state.starting = false;
      const latest = store.get("pods", pod.metadata.namespace, pod.metadata.name) as Pod | undefined;
      if (latest?.metadata.uid !== pod.metadata.uid || isTerminating(latest) || !isMeantToBeUp(latest)) return;
      state.up = true;
      queue.add(key);
    });
  };

  /** The pod keeps its last status, Ready included, until it is gone. */
  const end = (pod: Pod, state: Known): void => {
    if (state.ending) return;
    state.ending = true;
    const { namespace, name, uid } = pod.metadata;
    later(state, Number(annotation(pod, "exit-after-ms") ?? EXIT_AFTER_MS), () => {
      if (store.get("pods", namespace, name)?.metadata.uid === uid) store.remove("pods", namespace, name, { uid, gracePeriodSeconds: 0 });
    });
  };

  const unsubscribe = store.subscribe(({ type, resource, object: { metadata } }) => {
    if (resource !== "pods") return;
    if (type !== "DELETED") return queue.add(`${metadata.namespace}/${metadata.name}/${metadata.uid}`);
    for (const cancel of known.get(metadata.uid)?.timers ?? []) cancel();
    known.delete(metadata.uid);
  });
  for (const { metadata } of store.list("pods")) queue.add(`${metadata.namespace}/${metadata.name}/${metadata.uid}`);
  return () => {
    unsubscribe();
    queue.stop();
    for (const { timers } of known.values()) for (const cancel of timers) cancel();
  };
}

function annotation(pod: Pick<Pod, "metadata">, name: string): string | undefined {
  return pod.metadata.annotations?.[`sim/${name}`];
}

function isMeantToBeUp(pod: Pod): boolean {
  return annotation(pod, "crash") !== "true" && annotation(pod, "ready") !== "false";
}
