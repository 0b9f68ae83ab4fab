/** A pod as the rules see it. */
import type { ObjectMeta, PodObject, PodStatus } from "../../infra/kubernetes/resources.ts";
import { LABELS, lengthOf, MAX_TEXT, pickOurs } from "./annotations.ts";
import { readIdentity } from "../../infra/kubernetes/identity.ts";
import { parseTimestamp } from "../../infra/timestamp.ts";
import { type PodHealth, readHealth, startedWithinMs } from "./health.ts";
import type { Labels } from "./label-selector.ts";
import { ownerNameOf } from "./order.ts";

export interface Pod {
  readonly kind: "Pod";
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  /** The `controller-revision-hash` it was made from; undefined counts as outdated. */
  readonly revision: string | undefined;
  readonly controller: { readonly kind: string; readonly name: string } | undefined;
  /** UID of that controller. */
  readonly owner: string | undefined;
  /**
   * Name of the StatefulSet that controls it or, if nothing controls it, of the one that made it. Undefined for pods of
   * other controllers, and for those that never had one.
   */
  readonly madeBy: string | undefined;
  /** Its creation in UTC, to the second (RFC 3339): such times sort as text. */
  readonly createdAt: string | undefined;
  readonly labels: Labels;
  /** Set if its labels are too long to be kept: budgets select by them, so it is not evicted. */
  readonly textProblem?: string;
  readonly phase: string;
  readonly health: PodHealth;
  /** When it became ready, milliseconds since the epoch; undefined if its Ready condition does not tell (§5.7). */
  readonly readySince: number | undefined;
  /** Milliseconds from its start until it was last ready; undefined unless it is ready. */
  readonly readyAfterMs: number | undefined;
  /** The number of restarts of the container that restarted most often. */
  readonly restarts: number;
}

/** Reads the fields that the rules need of a pod; 15,000 whole pods would not fit in memory. */
export function readPod({ metadata = {}, status = {} }: PodObject): Pod {
  const { labels = {}, creationTimestamp: createdAt } = metadata;
  const controller = metadata.ownerReferences?.find((owner) => owner.controller);
  const health = readHealth(status, metadata);
  return {
    kind: "Pod",
    ...readIdentity(metadata),
    revision: labels[LABELS.revision],
    controller: controller && { kind: controller.kind, name: controller.name },
    owner: controller?.uid,
    madeBy: readMaker(metadata),
    createdAt,
    ...boundLabels(labels),
    phase: status.phase ?? "",
    health,
    readySince: readReadySince(status, createdAt),
    readyAfterMs: health.state === "ready" ? startedWithinMs(status) : undefined,
    restarts: countRestarts(status),
  };
}

function boundLabels(labels: Labels): Pick<Pod, "labels" | "textProblem"> {
  const length = lengthOf(labels);
  if (length <= MAX_TEXT) return { labels };
  return { labels: pickOurs(labels), textProblem: `its labels have ${length} characters, more than ${MAX_TEXT}` };
}

/**
 * The latest of the Ready condition's last change, the start of any container, and the pod's creation. The API
 * server's clock sets the time of creation, the node's clock the others: a node whose clock is behind makes a delay
 * shorter, and never starts it before the pod's creation.
 */
function readReadySince(
  { conditions = [], containerStatuses = [] }: PodStatus,
  createdAt: string | undefined,
): number | undefined {
  const turned = parseTimestamp(conditions.find(({ type }) => type === "Ready")?.lastTransitionTime ?? "");
  if (turned === undefined) return undefined;
  const started = containerStatuses.map(({ state }) => state?.running?.startedAt);
  return Math.max(turned, ...[createdAt, ...started].map((time) => parseTimestamp(time ?? "") ?? turned));
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
