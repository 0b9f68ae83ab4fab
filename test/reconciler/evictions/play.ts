/**
 * Evictions on a cluster that has no evictionrequest-controller, as Kubernetes 1.37 has none: what that does, as far as
 * a responder can tell (pkg/controller/evictionrequest/eviction_utils.go at d3fa5f68).
 */
import { RESPONDER } from "../../../reconciler/evictions/eviction.ts";
import type { Entry, EvictionStatus } from "./definition.ts";

export const EVICTOR = "imperative-eviction.k8s.io/evictor";

/** The controller's deadline: without a heartbeat for so long it goes on to the next responder. */
export const DEADLINE_MS = 20 * 60_000;

interface Target {
  readonly name: string;
  readonly uid: string;
}

/** The Eviction of a pod, as its controller has made it: the responders in their order, the first one active. */
export function evictionOf(pod: Target, now: number, responders: readonly string[] = [RESPONDER, EVICTOR]) {
  const startTime = new Date(now).toISOString().replace(/\.\d+/, "");
  const status: EvictionStatus = {
    requesters: [{ name: "drainer.example/node", intent: "Eviction" }],
    targetResponders: responders.map((name, i) => ({
      name,
      priority: name === EVICTOR ? 100 : 10_000 - i,
      state: i === 0 ? "Active" : "Inactive",
    })),
    responders: responders.map((name, i): Entry => (i === 0 ? { name, startTime } : { name })),
  };
  return {
    apiVersion: "lifecycle.k8s.io/v1alpha1",
    kind: "Eviction",
    metadata: {
      name: `${pod.name}-${pod.uid.slice(0, 8)}`,
      namespace: "default",
      labels: Object.fromEntries(responders.map((name) => [name, "responder"])),
    },
    spec: { target: { pod: { name: pod.name, uid: pod.uid } } },
    status,
  };
}

/** One pass of the controller; `isGone` if the pod is. The same status if there is nothing to do. */
export function advanceEviction(status: EvictionStatus, now: number, isGone: boolean): EvictionStatus {
  const targets = status.targetResponders ?? [];
  const active = targets.find(({ state }) => state === "Active");
  const entry = status.responders?.find(({ name }) => name === active?.name);
  if (!active || !entry) return status;
  const isWithdrawn = (status.requesters ?? []).every(({ intent }) => intent === "Withdrawn");
  const last = Date.parse(entry.heartbeatTime ?? entry.startTime ?? "");
  const state =
    entry.completionTime !== undefined
      ? "Completed"
      : isWithdrawn
        ? "Canceled"
        : now - last >= DEADLINE_MS
          ? "Interrupted"
          : "Active";
  if (state === "Active") return status;
  const goesOn = state !== "Canceled" && !isGone;
  const next = goesOn ? targets[targets.indexOf(active) + 1] : undefined;
  const startTime = new Date(now).toISOString().replace(/\.\d+/, "");
  const [type, reason] = isGone
    ? ["TargetEvicted", "PodDeleted"]
    : ["Failed", isWithdrawn ? "CanceledDueToNoRequesters" : "NoFurtherResponder"];
  const condition = { type, status: "True", reason, message: "", lastTransitionTime: startTime };
  return {
    ...status,
    targetResponders: targets.map((one) =>
      one === active ? { ...one, state } : one === next ? { ...one, state: "Active" } : one,
    ),
    responders: (status.responders ?? []).map((one) => (one.name === next?.name ? { ...one, startTime } : one)),
    ...(!next && { conditions: [condition] }),
  };
}
