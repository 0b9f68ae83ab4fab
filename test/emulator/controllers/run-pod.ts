/**
 * What a kubelet makes of a pod in one step, as a pure function. Annotations of a pod control when it becomes ready,
 * unready and gone, in the embedded cluster and on a real control plane (test/plane) alike:
 *
 *   sim/ready-after-ms  from bound to Ready, 300      sim/ready  "false" keeps it not Ready, at any time
 *   sim/exit-after-ms   from deletion to gone, 100    sim/crash  "true": containers wait in CrashLoopBackOff
 *   sim/crash "last"    its last container alone does, and the others work
 *   sim/ready "gated"   its containers are ready, and it is not, as if a readiness gate of it were closed
 *
 * An image of a registry in `.invalid` cannot be pulled, as on a real cluster (RFC 2606: no such name exists).
 *
 *   bound --report--> Running, not Ready --ready-after-ms--> Ready <--sim/ready--> not Ready
 *   deleted --exit-after-ms--> gone
 */
import { isTrue, timestamp } from "../objects.ts";
import type { Change, Step } from "./changes.ts";
import { hasEnded, isTerminating, type Pod } from "./objects.ts";

const LATENCY_MS = 1;
const READY_AFTER_MS = 300;
const EXIT_AFTER_MS = 100;
const CRASHING = { waiting: { reason: "CrashLoopBackOff", message: "simulated crash" } };

/** What the kubelet remembers of a pod; times in milliseconds since the epoch. */
export interface PodMemory {
  readonly uid: string;
  readonly ip: string;
  readonly upAt: number;
  readonly goneAt: number;
  readonly pulledFrom: number;
  /** The last report. */
  readonly reported: string;
}

/** Of the pod with this UID, the kubelet's `count`th. */
export function newMemory(uid: string, count: number): PodMemory {
  const ip = `10.244.${(count >> 8) & 255}.${count & 255}`;
  return { uid, ip, upAt: Infinity, goneAt: Infinity, pulledFrom: Infinity, reported: "" };
}

/** The containers of a node that went down start again once it is up. */
export const afterOutage = (memory: PodMemory): PodMemory => ({
  ...memory,
  upAt: Infinity,
  goneAt: Infinity,
  reported: "",
});

/** One step of the kubelet of a pod; `now` in milliseconds since the epoch. */
export function runPod(pod: Pod, memory: PodMemory, now: number): Step & { readonly memory: PodMemory } {
  if (isTerminating(pod)) return end(pod, memory, now);
  if (!pod.spec.nodeName || hasEnded(pod)) return { memory, changes: [] };
  const crashing = annotation(pod, "crash") === "true";
  const unpullable = pod.spec.containers.some(({ image = "" }) => !isPullable(image));
  const shouldBeUp = !crashing && !unpullable && annotation(pod, "ready") !== "false";
  const pulledFrom = unpullable ? Math.min(memory.pulledFrom, now) : Infinity;
  const pull = unpullable ? pullAfter(now - pulledFrom) : undefined;
  const upAt = shouldBeUp ? memory.upAt : Infinity;
  const gatesOpen = (pod.spec.readinessGates ?? []).every((gate) => isTrue(pod, gate.conditionType));
  const isGated = annotation(pod, "ready") === "gated";
  const observed = {
    up: upAt <= now,
    gatesOpen: gatesOpen && !isGated,
    crashing,
    ...(annotation(pod, "crash") === "last" && { lastCrashes: true }),
    ip: memory.ip,
    ...(pull && { pull: pull.reason }),
  };
  // A kubelet writes the status when what it observes changes; it leaves other writers' changes until then.
  const reported = JSON.stringify(observed);
  const write = (): Change => ({
    verb: "update",
    resource: "pods",
    object: { ...pod, status: statusOf(pod, observed, timestamp(now)) },
  });
  const changes = reported === memory.reported ? [] : [write()];
  const next = { ...memory, upAt, pulledFrom, reported };
  if (pull) return { memory: next, changes, nextMs: pull.nextMs };
  if (observed.up || !shouldBeUp) return { memory: next, changes };
  const dueAt = Math.min(upAt, now + durationOf(pod, "ready-after-ms", READY_AFTER_MS));
  return { memory: { ...next, upAt: dueAt }, changes, nextMs: dueAt - now + LATENCY_MS };
}

/** A terminating pod keeps its last status, Ready included. */
function end(pod: Pod, memory: PodMemory, now: number): Step & { readonly memory: PodMemory } {
  const goneAt = Math.min(memory.goneAt, now + durationOf(pod, "exit-after-ms", EXIT_AFTER_MS));
  const isGone = goneAt <= now;
  const changes = isGone ? [{ verb: "remove", resource: "pods", object: pod, atOnce: true } as const] : [];
  return { memory: { ...memory, goneAt }, changes, nextMs: isGone ? undefined : goneAt - now };
}

export function annotation(pod: Pod, name: string): string | undefined {
  return pod.metadata.annotations?.[`sim/${name}`];
}

/** Milliseconds; 0 if the annotation is not a number. */
function durationOf(pod: Pod, name: string, defaultMs: number): number {
  return Number(annotation(pod, name) ?? defaultMs) || 0;
}

/** The registry's name is before the first slash, if that has a dot. */
const isPullable = (image: string): boolean => !/^[^/]*\.invalid(?::\d+)?\//.test(image);

type PullError = "ErrImagePull" | "ImagePullBackOff";

/** Milliseconds: how long a failed pull is shown as such; the first back-off, which doubles, and the longest. */
const PULL_FAILED_MS = 2000;
const BACK_OFF_MS = 10_000;
const MAX_BACK_OFF_MS = 300_000;

/** What a kubelet reports so long after the first pull, and in how many milliseconds that changes. */
function pullAfter(ms: number): { readonly reason: PullError; readonly nextMs: number } {
  let since = ms;
  for (let backOff = BACK_OFF_MS; ; backOff = Math.min(backOff * 2, MAX_BACK_OFF_MS)) {
    if (since < PULL_FAILED_MS) return { reason: "ErrImagePull", nextMs: PULL_FAILED_MS - since };
    if (since < backOff) return { reason: "ImagePullBackOff", nextMs: backOff - since };
    since -= backOff;
  }
}

/** The words of containerd, and of the kubelet's back-off around them. */
function waitForImage(image: string, reason: PullError): object {
  const [host = ""] = image.split("/");
  const failure = `failed to pull and unpack image ${JSON.stringify(image)}: failed to resolve reference ${JSON.stringify(image)}: dial tcp: lookup ${host}: no such host`;
  const message =
    reason === "ErrImagePull" ? failure : `Back-off pulling image ${JSON.stringify(image)}: ErrImagePull: ${failure}`;
  return { waiting: { reason, message } };
}

interface Observed {
  /** Whether the containers run and pass their probes. */
  readonly up: boolean;
  readonly gatesOpen: boolean;
  readonly crashing: boolean;
  /** The last container crashes, and no other. */
  readonly lastCrashes?: boolean;
  readonly ip: string;
  /** Why an image is not there. */
  readonly pull?: PullError;
}

/** The pod's new status; `now` is RFC 3339. A condition's time changes only with its status. */
function statusOf({ spec, status }: Pod, observed: Observed, now: string): Pod["status"] {
  const { up, gatesOpen, crashing, lastCrashes = false, ip, pull } = observed;
  const allUp = up && !lastCrashes;
  const { conditions = [], startTime = now } = status;
  const desired = { PodScheduled: true, Initialized: true, ContainersReady: allUp, Ready: allUp && gatesOpen };
  const own = Object.entries(desired).map(([type, isTrue]) => {
    const changed = { type, status: isTrue ? "True" : "False", lastTransitionTime: now };
    return conditions.find((previous) => previous.type === type && previous.status === changed.status) ?? changed;
  });
  // It never becomes less.
  const restartCount = Math.max(crashing ? 3 : 0, ...(status.containerStatuses ?? []).map((one) => one.restartCount));
  const containers = { ready: up, started: up, restartCount, imageID: "simulated", lastState: {} };
  const state = crashing ? CRASHING : { running: { startedAt: startTime } };
  const missing = { ready: false, started: false, restartCount: 0, imageID: "", lastState: {} };
  return {
    ...status,
    phase: pull ? "Pending" : "Running",
    podIP: ip,
    podIPs: [{ ip }],
    hostIP: "127.0.0.1",
    startTime,
    conditions: [...own, ...conditions.filter(({ type }) => !(type in desired))],
    containerStatuses: spec.containers.map(({ name, image = "" }, i) => {
      if (pull && !isPullable(image)) return { name, image, ...missing, state: waitForImage(image, pull) };
      const crashes = lastCrashes && i === spec.containers.length - 1;
      return crashes
        ? { name, image, ...containers, ready: false, started: false, state: CRASHING }
        : { name, image, ...containers, state };
    }),
  };
}
