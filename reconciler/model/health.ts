/**
 * The health of a pod: one state, made once from what was reported of it, and what that state means for whom (§1.4a).
 *
 *   gone         it is being deleted
 *   ready        it runs, and all of its containers are ready (§0.6)
 *   working      it is not ready, but a container of it is
 *   lost         no container of it works, and it cannot come up by itself: `fault` says why
 *   starting     no container of it works, and it was never Ready
 *   recovering   no container of it works, and it was Ready, or its conditions do not tell
 */
import type { ObjectMeta, PodStatus } from "../../infra/kubernetes/resources.ts";
import { parseTimestamp } from "../../infra/timestamp.ts";

export type HealthState = "ready" | "working" | "starting" | "recovering" | "lost" | "gone";

export interface PodHealth {
  readonly state: HealthState;
  /**
   * Since when it is Ready or is not, by its conditions; since when a pod that is being deleted should be gone.
   * Milliseconds since the epoch; undefined if nothing shows it.
   */
  readonly since: number | undefined;
  /**
   * Whether it has been Ready since it was created. Undefined if its conditions do not tell: it may have been Ready in
   * its first seconds.
   */
  readonly served: boolean | undefined;
  /** Why it cannot become ready by itself, such as `CrashLoopBackOff`; undefined if it can, or is being deleted. */
  readonly fault: string | undefined;
  readonly missingImage: string | undefined;
}

interface Meaning {
  /**
   * For rollouts, budgets and downscales: whether something becomes unavailable if the pod goes. `lately`: until it has
   * not been ready for `RECOVERY_MS`, and not at all if it never was.
   */
  readonly serves: "yes" | "lately" | "no";
  /**
   * For zones that are to shrink: whether it comes or goes by a rollout, a revert or a downscale, so that they wait.
   * `unlessServed`: it may be one that has yet to come back; one that was Ready has a fault of its own.
   */
  readonly moves: "yes" | "unlessServed" | "no";
  /** For messages and the status page, unless a fault says more. */
  readonly label: string;
}

const MEANINGS: Readonly<Record<HealthState, Meaning>> = {
  ready: { serves: "yes", moves: "no", label: "ready" },
  working: { serves: "yes", moves: "unlessServed", label: "not ready" },
  starting: { serves: "no", moves: "yes", label: "not ready" },
  recovering: { serves: "lately", moves: "unlessServed", label: "not ready" },
  lost: { serves: "no", moves: "unlessServed", label: "not ready" },
  gone: { serves: "lately", moves: "yes", label: "terminating" },
};

/**
 * Milliseconds that a pod which was Ready gets to recover, and a new template to come up in one zone before it reaches
 * another unhealthy zone.
 */
export const RECOVERY_MS = 5 * 60_000;

/** A pod, or what is to become one. */
interface HasHealth {
  readonly health: PodHealth;
}

export const isReady = ({ health }: HasHealth): boolean => health.state === "ready";
export const isTerminating = ({ health }: HasHealth): boolean => health.state === "gone";

/**
 * True if it serves nothing, and is not recovering: replacing or removing it makes nothing unavailable, so it waits for
 * no other pod, and no other pod waits for it.
 */
export function servesNothing(pod: HasHealth, now: number): boolean {
  const { serves } = MEANINGS[pod.health.state];
  return serves === "no" || (serves === "lately" && (neverServed(pod) || isOverdue(pod, now)));
}

/** True if no container of it works, and it was certainly not Ready since it was created; also while it terminates. */
export function neverServed({ health: { state, served } }: HasHealth): boolean {
  return MEANINGS[state].serves !== "yes" && served === false;
}

/**
 * True if it has not been Ready for as long as a pod may take to recover, or should have been gone for as long. False
 * if that is unknown.
 */
export function isOverdue({ health: { state, since } }: HasHealth, now: number): boolean {
  return state !== "ready" && since !== undefined && now - since >= RECOVERY_MS;
}

/** True if it comes or goes by a rollout, a revert or a downscale, or may. */
export function isMoving({ health: { state, served } }: HasHealth): boolean {
  const { moves } = MEANINGS[state];
  return moves === "yes" || (moves === "unlessServed" && served !== true);
}

/** The state in a few words: `ImagePullBackOff registry.example/app:2`. */
export function describeHealth({ health: { state, fault, missingImage = "" } }: HasHealth): string {
  return fault === undefined ? MEANINGS[state].label : `${fault} ${missingImage}`.trimEnd();
}

/** The health of a pod that has become ready. */
export const readyHealth = (since: number | undefined): PodHealth => ({
  state: "ready",
  since,
  served: true,
  ...NO_FAULT,
});

const NO_FAULT = { fault: undefined, missingImage: undefined } as const;

/** Another pod's health once it is being deleted. */
export const goneHealth = ({ served }: PodHealth, since: number | undefined): PodHealth => ({
  state: "gone",
  since,
  served,
  ...NO_FAULT,
});

type Times = Pick<ObjectMeta, "creationTimestamp" | "deletionTimestamp">;

export function readHealth(status: PodStatus, { creationTimestamp, deletionTimestamp }: Times): PodHealth {
  const served = hasServed(status);
  if (deletionTimestamp !== undefined)
    return { state: "gone", since: parseTimestamp(deletionTimestamp), served, ...NO_FAULT };
  const found = { served, fault: findFault(status), missingImage: findMissingImage(status) };
  if (isRunningAndReady(status)) return { state: "ready", since: turnedAt(status), ...found };
  const since = notBefore(creationTimestamp, notReadySince(status));
  return { state: stateOf(status, found), since, ...found };
}

function stateOf(
  { containerStatuses = [] }: PodStatus,
  { served, fault }: Pick<PodHealth, "served" | "fault">,
): HealthState {
  if (containerStatuses.some(({ ready }) => ready)) return "working";
  if (fault !== undefined) return "lost";
  return served === false ? "starting" : "recovering";
}

/**
 * Phase Running, every container ready and running; no container statuses count as ready (§0.6). A Ready condition that
 * is not True (a readiness gate that is closed) counts as well: the StatefulSet's own status follows it.
 */
function isRunningAndReady(status: PodStatus): boolean {
  if (status.phase !== "Running") return false;
  if (status.conditions?.some((condition) => condition.type === "Ready" && condition.status !== "True")) return false;
  return (status.containerStatuses ?? []).every((container) => container.ready && container.state?.running);
}

/**
 * A kubelet writes start time and condition in its first report. The bound is longer than a report takes, and shorter
 * than the time in which a pod of interest comes up and fails.
 */
const FIRST_REPORT_MS = 10_000;
/** The difference of both times within one report: times have a resolution of one second. */
const ONE_REPORT_MS = 1000;

/**
 * The condition Ready is False from the kubelet's first report on, and its time moves only when it turns: a pod that is
 * not ready was ready in between if it turned later than that, however often containers have restarted.
 * https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#pod-conditions
 */
function hasServed(status: PodStatus): boolean | undefined {
  const lasted = startedWithinMs(status);
  if (isRunningAndReady(status) || (lasted !== undefined && lasted > FIRST_REPORT_MS)) return true;
  return isUnreported(status) || (lasted !== undefined && lasted <= ONE_REPORT_MS) ? false : undefined;
}

/** Milliseconds from its start until the condition Ready last turned. */
export function startedWithinMs(status: PodStatus): number | undefined {
  const turned = turnedAt(status);
  const startedAt = parseTimestamp(status.startTime ?? "");
  // Before its start only by a clock of the node that was set back meanwhile: such a time tells nothing.
  return turned === undefined || startedAt === undefined || turned < startedAt ? undefined : turned - startedAt;
}

const turnedAt = ({ conditions }: PodStatus): number | undefined =>
  parseTimestamp(conditions?.find(({ type }) => type === "Ready")?.lastTransitionTime ?? "");

/** No kubelet has reported on it. */
const isUnreported = ({ startTime, conditions = [] }: PodStatus): boolean =>
  startTime === undefined && !conditions.some(({ type }) => type === "Ready");

/**
 * A pod that no kubelet has reported yet has no condition Ready: then the scheduler's condition shows how long it has
 * been there.
 */
function notReadySince({ conditions = [] }: PodStatus): number | undefined {
  const condition =
    conditions.find(({ type }) => type === "Ready") ?? conditions.find(({ type }) => type === "PodScheduled");
  if (condition?.type === "Ready" && condition.status === "True") return undefined;
  return parseTimestamp(condition?.lastTransitionTime ?? "");
}

/** No pod has been not ready for longer than it exists, whatever the clock of its node says. */
const notBefore = (created: string | undefined, time: number | undefined): number | undefined =>
  time && Math.max(time, parseTimestamp(created ?? "") ?? time);

/** Reasons of a waiting container that time alone seldom cures. */
const CANNOT_START =
  /^(CrashLoopBackOff|ImagePullBackOff|ErrImagePull|CreateContainer\w*Error|RunContainerError|InvalidImageName)$/;

function findFault(status: PodStatus): string | undefined {
  if (status.phase === "Failed") return "Failed";
  const waiting = [...waitingReasons(status.initContainerStatuses), ...waitingReasons(status.containerStatuses)];
  const unschedulable = status.conditions?.some(
    (condition) =>
      condition.type === "PodScheduled" && condition.status === "False" && condition.reason === "Unschedulable",
  );
  return waiting.find((reason) => CANNOT_START.test(reason)) ?? (unschedulable ? "Unschedulable" : undefined);
}

function waitingReasons(containers: PodStatus["containerStatuses"]): string[] {
  return (containers ?? []).flatMap((container) => container.state?.waiting?.reason ?? []);
}

/** Reasons of a waiting container whose image cannot be had. */
const NO_IMAGE = /^(ImagePullBackOff|ErrImagePull|InvalidImageName)$/;

const findMissingImage = ({ initContainerStatuses = [], containerStatuses = [] }: PodStatus): string | undefined =>
  [...initContainerStatuses, ...containerStatuses].find(({ state }) => NO_IMAGE.test(state?.waiting?.reason ?? ""))
    ?.image;
