/** The status that a kubelet reports. Times of conditions move only when the condition does. */
import { isTrue } from "../objects.ts";
import type { Condition, Pod, PodStatus } from "./objects.ts";

export interface PodFacts {
  readonly ip: string;
  /** Containers are up and pass their probes. */
  readonly up: boolean;
  readonly gatesOpen: boolean;
  readonly crashing: boolean;
}

/** `now` as RFC 3339. Ready needs the containers up and every readiness gate True. */
export function reportPod(pod: Pod, { ip, up, gatesOpen, crashing }: PodFacts, now: string): PodStatus {
  const before = pod.status.conditions ?? [];
  const facts = { PodScheduled: true, Initialized: true, ContainersReady: up, Ready: up && gatesOpen };
  return {
    ...pod.status,
    phase: "Running",
    podIP: ip,
    podIPs: [{ ip }],
    hostIP: "127.0.0.1",
    startTime: pod.status.startTime ?? now,
    conditions: [
      ...Object.entries(facts).map(([type, holds]) => setCondition(before, type, holds, now)),
      ...before.filter((condition) => !(condition.type in facts)),
    ],
    containerStatuses: pod.spec.containers.map(({ name, image = "" }) => {
      const earlier = pod.status.containerStatuses?.find((status) => status.name === name);
      const state = crashing ? CRASHING : { running: earlier?.state?.running ?? { startedAt: now } };
      return { name, image, imageID: "simulated", ready: up, started: up, restartCount: crashing ? 3 : 0, state, lastState: {} };
    }),
  };
}

/** Whether each readiness gate has its condition True. */
export function areGatesOpen(pod: Pod): boolean {
  return (pod.spec.readinessGates ?? []).every((gate) => isTrue(pod, gate.conditionType));
}

/** The condition of that type as it stands, or turned now. */
export function setCondition(before: readonly Condition[], type: string, holds: boolean, now: string): Condition {
  const status = holds ? "True" : "False";
  const earlier = before.find((condition) => condition.type === type);
  return earlier?.status === status ? earlier : { type, status, lastTransitionTime: now };
}

const CRASHING = { waiting: { reason: "CrashLoopBackOff", message: "simulated crash" } };
