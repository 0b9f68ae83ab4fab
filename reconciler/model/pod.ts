/** A pod as the rules see it. */
import type { ObjectMeta, PodObject, PodStatus } from "../../infra/kubernetes/resources.ts";
import { parseTimestamp } from "../../infra/timestamp.ts";
import { LABELS } from "./annotations.ts";
import { readIdentity } from "./identity.ts";
import { ownerNameOf } from "./order.ts";

export interface Pod {
  readonly kind: "Pod";
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  /** The `controller-revision-hash` it was made from; undefined counts as outdated. */
  readonly revision: string | undefined;
  /** UID of the controller that owns it. */
  readonly owner: string | undefined;
  /**
   * Name of the StatefulSet that controls it or, if nothing controls it, of the one that made it. Undefined for pods of
   * other controllers, and for those that never had one.
   */
  readonly madeBy: string | undefined;
  /** Its creation in UTC, to the second (RFC 3339): such times sort as text. */
  readonly createdAt: string | undefined;
  readonly terminating: boolean;
  /** Running and ready (§0.6): serving, as far as Kubernetes can tell. */
  readonly ready: boolean;
  /**
   * Its conditions show that it has been Ready since its creation: if it is not ready now, it is not merely starting.
   */
  readonly hasBeenReady: boolean;
  /**
   * Its conditions show that it has not been Ready since its creation. Both this and `hasBeenReady` are false if the
   * conditions do not tell: it may have been Ready in its first seconds.
   */
  readonly neverReady: boolean;
  /**
   * Since when it is not Ready by its conditions, or since when a terminating pod should be gone; milliseconds since
   * the epoch. Undefined if it is Ready, or nothing shows it.
   */
  readonly notReadySince: number | undefined;
  /** Milliseconds from its start until it was last ready; undefined unless it is ready. */
  readonly readyAfterMs: number | undefined;
  /** When its Ready condition last turned, milliseconds since the epoch; undefined unless it is ready. */
  readonly readyAt: number | undefined;
  /** The number of restarts of the container that restarted most often. */
  readonly restarts: number;
  /** Why the pod cannot become ready by itself, such as `CrashLoopBackOff`; undefined if it can. */
  readonly broken: string | undefined;
  /** The image that cannot be pulled. */
  readonly missingImage: string | undefined;
  /** Some container of it is ready. */
  readonly working: boolean;
}

/** Reads the fields that the rules need of a pod; 15,000 whole pods would not fit in memory. */
export function readPod({ metadata = {}, status = {} }: PodObject): Pod {
  const terminating = metadata.deletionTimestamp !== undefined;
  const ready = !terminating && isRunningAndReady(status);
  return {
    kind: "Pod",
    ...readIdentity(metadata),
    revision: metadata.labels?.[LABELS.revision],
    owner: metadata.ownerReferences?.find((owner) => owner.controller)?.uid,
    madeBy: readMaker(metadata),
    createdAt: metadata.creationTimestamp,
    terminating,
    ready,
    ...readTimes(status, metadata, ready),
    restarts: countRestarts(status),
    ...(terminating ? NO_FAULT : { broken: whyBroken(status), missingImage: findMissingImage(status) }),
    working: !terminating && (status.containerStatuses ?? []).some((container) => container.ready),
  };
}

/** The StatefulSet controller gives each pod this label, with the pod's name; nobody else needs it. */
const POD_NAME = "statefulset.kubernetes.io/pod-name";

function readMaker({
  name = "",
  labels,
  ownerReferences = [],
}: Pick<ObjectMeta, "name" | "labels" | "ownerReferences">) {
  const controller = ownerReferences.find((owner) => owner.controller);
  if (controller) return isStatefulSet(controller) ? controller.name : undefined;
  return labels?.[POD_NAME] === name && /-\d+$/.test(name) ? ownerNameOf(name) : undefined;
}

const isStatefulSet = ({ kind, apiVersion }: { readonly kind: string; readonly apiVersion: string }): boolean =>
  kind === "StatefulSet" && apiVersion.startsWith("apps/");

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
 * From its start until the condition Ready last turned. It is False from the kubelet's first report on, and its time
 * moves only when it turns: a pod that is not ready was ready in between if it turned later than that, however often
 * containers have restarted. https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#pod-conditions
 */
function readyAfterMs(status: PodStatus): number | undefined {
  const turned = turnedAt(status);
  const startedAt = parseTimestamp(status.startTime ?? "");
  // Before its start only by a clock of the node that was set back meanwhile: such a time tells nothing.
  return turned === undefined || startedAt === undefined || turned < startedAt ? undefined : turned - startedAt;
}

const turnedAt = ({ conditions }: PodStatus): number | undefined =>
  parseTimestamp(conditions?.find(({ type }) => type === "Ready")?.lastTransitionTime ?? "");

const countRestarts = ({ containerStatuses = [], initContainerStatuses = [] }: PodStatus): number =>
  Math.max(0, ...[...containerStatuses, ...initContainerStatuses].map(({ restartCount = 0 }) => restartCount));

/** No kubelet has reported on it. */
const isUnreported = ({ startTime, conditions = [] }: PodStatus): boolean =>
  startTime === undefined && !conditions.some(({ type }) => type === "Ready");

/** The times of its readiness, by its conditions. */
function readTimes(
  status: PodStatus,
  { creationTimestamp, deletionTimestamp }: Pick<ObjectMeta, "creationTimestamp" | "deletionTimestamp">,
  ready: boolean,
) {
  const lasted = readyAfterMs(status);
  return {
    hasBeenReady: isRunningAndReady(status) || (lasted !== undefined && lasted > FIRST_REPORT_MS),
    neverReady:
      !isRunningAndReady(status) && (isUnreported(status) || (lasted !== undefined && lasted <= ONE_REPORT_MS)),
    notReadySince:
      deletionTimestamp === undefined
        ? notBefore(creationTimestamp, notReadySince(status))
        : parseTimestamp(deletionTimestamp),
    readyAfterMs: ready ? lasted : undefined,
    readyAt: ready ? turnedAt(status) : undefined,
  };
}

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

const NO_FAULT: Pick<Pod, "broken" | "missingImage"> = { broken: undefined, missingImage: undefined };

/** Reasons of a waiting container that time alone seldom cures. */
const CANNOT_START =
  /^(CrashLoopBackOff|ImagePullBackOff|ErrImagePull|CreateContainer\w*Error|RunContainerError|InvalidImageName)$/;

function whyBroken(status: PodStatus): string | undefined {
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

/** The state of a pod that is not ready, in a few words: `ImagePullBackOff registry.example/app:2`. */
export function describeIllness({ terminating, broken, missingImage }: Pod): string {
  if (terminating) return "terminating";
  return broken === undefined ? "not ready" : [broken, missingImage ?? ""].join(" ").trimEnd();
}
