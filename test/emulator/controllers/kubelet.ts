/**
 * The kubelets. Annotations of a pod control when it becomes ready, unready and gone, as they do for the
 * simulated kubelets of a real control plane (test/plane):
 *
 *   sim/ready-after-ms  from bound to Ready, 300      sim/ready  "false" keeps it not Ready, at any time
 *   sim/exit-after-ms   from deletion to gone, 100    sim/crash  "true": containers wait in CrashLoopBackOff
 *
 *   bound --report--> Running, not Ready --ready-after-ms--> Ready <--sim/ready--> not Ready
 *   deleted --exit-after-ms--> gone
 */
import type { Clock } from "../clock.ts";
import { isTrue, timestamp } from "../objects.ts";
import type { Store } from "../store.ts";
import { hasEnded, isTerminating, type Pod } from "./objects.ts";
import { getByKey, keyOf, type Controller } from "./queue.ts";

const LATENCY_MS = 1;
export const READY_AFTER_MS = 300;
export const EXIT_AFTER_MS = 100;
const CRASHING = { waiting: { reason: "CrashLoopBackOff", message: "simulated crash" } };

export function kubelets(store: Store, clock: Clock): Controller {
  let lastIp = 0;
  /**
   * The state of a pod that is new to its kubelet. Times in ms since the epoch; `reported` is the last
   * report.
   */
  const newPodState = (uid: string) => {
    lastIp += 1;
    return { uid, ip: `10.244.${(lastIp >> 8) & 255}.${lastIp & 255}`, upAt: Infinity, goneAt: Infinity, reported: "" };
  };
  const known = new Map<string, ReturnType<typeof newPodState>>();
  return {
    latencyMs: LATENCY_MS,
    keysFor: ({ resource, object }) => (resource === "pods" ? [keyOf(object)] : []),
    reconcile: (key) => {
      const pod = getByKey(store, "pods", key) as Pod | undefined;
      if (!pod) return void known.delete(key);
      const now = clock.now();
      const { namespace, name, uid } = pod.metadata;
      const before = known.get(key);
      const state = before?.uid === uid ? before : newPodState(uid);
      known.set(key, state);
      if (isTerminating(pod)) {
        // A terminating pod keeps its last status, Ready included.
        state.goneAt = Math.min(state.goneAt, now + durationOf(pod, "exit-after-ms", EXIT_AFTER_MS));
        if (state.goneAt > now) return state.goneAt - now;
        return void store.remove("pods", namespace, name, { gracePeriodSeconds: 0 });
      }
      if (!pod.spec.nodeName || hasEnded(pod)) return;
      const crashing = annotation(pod, "crash") === "true";
      const shouldBeUp = !crashing && annotation(pod, "ready") !== "false";
      if (!shouldBeUp) state.upAt = Infinity;
      const gatesOpen = (pod.spec.readinessGates ?? []).every((gate) => isTrue(pod, gate.conditionType));
      const observed = { up: state.upAt <= now, gatesOpen, crashing, ip: state.ip };
      // A kubelet writes the status when what it observes changes; it leaves other writers' changes until
      // then.
      const report = JSON.stringify(observed);
      if (report !== state.reported) store.update("pods", { ...pod, status: statusOf(pod, observed, timestamp(now)) });
      state.reported = report;
      if (observed.up || !shouldBeUp) return;
      state.upAt = Math.min(state.upAt, now + durationOf(pod, "ready-after-ms", READY_AFTER_MS));
      return state.upAt - now + LATENCY_MS;
    },
  };
}

export function annotation(pod: Pod, name: string): string | undefined {
  return pod.metadata.annotations?.[`sim/${name}`];
}

/** Milliseconds; 0 if the annotation is not a number. */
export function durationOf(pod: Pod, name: string, defaultMs: number): number {
  return Number(annotation(pod, name) ?? defaultMs) || 0;
}

interface Observed {
  /** Whether the containers run and pass their probes. */
  readonly up: boolean;
  readonly gatesOpen: boolean;
  readonly crashing: boolean;
  readonly ip: string;
}

/** The pod's new status; `now` is RFC 3339. A condition's time changes only with its status. */
export function statusOf({ spec, status }: Pod, { up, gatesOpen, crashing, ip }: Observed, now: string): Pod["status"] {
  const { conditions = [], startTime = now } = status;
  const desired = { PodScheduled: true, Initialized: true, ContainersReady: up, Ready: up && gatesOpen };
  const own = Object.entries(desired).map(([type, isTrue]) => {
    const changed = { type, status: isTrue ? "True" : "False", lastTransitionTime: now };
    return conditions.find((previous) => previous.type === type && previous.status === changed.status) ?? changed;
  });
  const containers = { ready: up, started: up, restartCount: crashing ? 3 : 0, imageID: "simulated", lastState: {} };
  const state = crashing ? CRASHING : { running: { startedAt: startTime } };
  return {
    ...status,
    phase: "Running",
    podIP: ip,
    podIPs: [{ ip }],
    hostIP: "127.0.0.1",
    startTime,
    conditions: [...own, ...conditions.filter(({ type }) => !(type in desired))],
    containerStatuses: spec.containers.map(({ name, image = "" }) => ({ name, image, ...containers, state })),
  };
}
