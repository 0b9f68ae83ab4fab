/** A pod as the rules see it. */
import type { ObjectMeta, PodObject, PodStatus } from "../../infra/kubernetes/resources.ts";
import { LABELS } from "./annotations.ts";
import { type PodHealth, readHealth, startedWithinMs } from "./health.ts";
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
  readonly health: PodHealth;
  /** The states `gone` and `ready` of its health, as Kubernetes calls them. */
  readonly terminating: boolean;
  readonly ready: boolean;
  /** Milliseconds from its start until it was last ready; undefined unless it is ready. */
  readonly readyAfterMs: number | undefined;
  /** The number of restarts of the container that restarted most often. */
  readonly restarts: number;
}

/** Reads the fields that the rules need of a pod; 15,000 whole pods would not fit in memory. */
export function readPod({ metadata = {}, status = {} }: PodObject): Pod {
  const health = readHealth(status, metadata);
  const ready = health.state === "ready";
  return {
    kind: "Pod",
    ...readIdentity(metadata),
    revision: metadata.labels?.[LABELS.revision],
    owner: metadata.ownerReferences?.find((owner) => owner.controller)?.uid,
    madeBy: readMaker(metadata),
    createdAt: metadata.creationTimestamp,
    health,
    terminating: health.state === "gone",
    ready,
    readyAfterMs: ready ? startedWithinMs(status) : undefined,
    restarts: countRestarts(status),
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

const countRestarts = ({ containerStatuses = [], initContainerStatuses = [] }: PodStatus): number =>
  Math.max(0, ...[...containerStatuses, ...initContainerStatuses].map(({ restartCount = 0 }) => restartCount));
