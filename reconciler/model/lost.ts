/**
 * Pods that serve nothing. Replacing or removing them makes nothing unavailable: they wait for no other pod, and no
 * other pod waits for them (§1.4a).
 *
 *   a container of it works                              it serves, ready or not
 *   none works, and it cannot come up by itself          lost
 *   none works, and it was never Ready                   serves nothing: it starts, or its template is at fault. It may have been Ready in its first
 *                                                        seconds if its conditions do not tell: then it counts as one that was
 *   none works, it was Ready, and is not for 5 minutes   serves nothing: it does not come back by itself
 *   none works, and it was Ready until lately            it recovers
 */
import type { Pod } from "./pod.ts";

/**
 * Milliseconds that a pod which was Ready gets to recover, and a new template to come up in one zone before it reaches
 * another unhealthy zone.
 */
export const RECOVERY_MS = 5 * 60_000;

/** True if it serves nothing and cannot come up by itself. */
export function isLost(pod: Pod): boolean {
  return !pod.ready && !pod.working && pod.broken !== undefined;
}

/** True if no container of it works, and it was certainly not Ready since it was created; also while it terminates. */
export function neverServed(pod: Pod): boolean {
  return !pod.ready && !pod.working && pod.neverReady;
}

/**
 * True if it has not been Ready for as long as a pod may take to recover, or should have been gone for as long. False
 * if that is unknown.
 */
export function isOverdue(pod: Pick<Pod, "ready" | "notReadySince">, now: number | undefined): boolean {
  return !pod.ready && pod.notReadySince !== undefined && now !== undefined && now - pod.notReadySince >= RECOVERY_MS;
}

/** True if it serves nothing, and is not recovering. */
export function servesNothing(pod: Pod, now: number | undefined): boolean {
  return isLost(pod) || neverServed(pod) || (!pod.working && isOverdue(pod, now));
}
