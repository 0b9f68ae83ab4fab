/**
 * Since when pods are ready: kept on the pods themselves, as Kubernetes does not tell it in a way that outlives a
 * flapping probe (§5.7).
 */
import { formatTimestamp } from "../../infra/timestamp.ts";
import type { Pod } from "../model/pod.ts";

/** A new value of the annotation, null to remove it. */
export interface ReadyTimeChange {
  readonly pod: Pod;
  readonly value: string | null;
}

/**
 * Set when a pod is first seen ready, removed when it is seen otherwise; pods on their way out are left alone. `now` in
 * milliseconds.
 */
export function changeReadyTimes(pods: readonly Pod[], now: number): ReadyTimeChange[] {
  return pods.flatMap((pod) => {
    if (pod.terminating || pod.ready === (pod.readyTime !== undefined)) return [];
    return [{ pod, value: pod.ready ? formatTimestamp(now) : null }];
  });
}
