/**
 * One sync of the StatefulSet controller, as a pure function: the StatefulSet and its pods in, changes out. What it
 * does with pods is in plan.ts. A pod with the annotation `sim/kept` cannot be deleted by it, as if a webhook of others
 * refused that.
 */
import type { Change, Step } from "../changes.ts";
import { type OwnerReference, put } from "../../objects.ts";
import { objectSelector } from "../../selectors.ts";
import {
  controllerOf,
  controllerReference,
  isTerminating,
  STATEFUL_SETS,
  type Pod,
  type Revision,
  type StatefulSet,
} from "../objects.ts";
import { availableAt, planSync, statusOf, withIdentity } from "./plan.ts";
import { syncRevisions } from "./revisions.ts";

const NOTHING = { create: [], remove: [], identify: [] };

interface SetView {
  readonly set: StatefulSet;
  /** The pods that bear its name, or that it controls. */
  readonly pods: readonly Pod[];
  /** A ControllerRevision of the namespace by its name. */
  readonly revision: (name: string) => Revision | undefined;
  /** How many pods a ResourceQuota still lets it create. */
  readonly room?: number;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

export function syncSet({ set, pods: candidates, revision, room = Infinity, now }: SetView): Step {
  const claimed = candidates.map((pod) => claim(set, pod));
  const pods = claimed.flatMap(({ own }) => own ?? []);
  const revisions = syncRevisions(set, revision);
  const taken = new Set(candidates.map(({ metadata }) => metadata.name));
  const isTaken = (name: string): boolean => taken.has(name);
  // Of a set that is being deleted only the status is kept up.
  const { create, remove, identify } = isTerminating(set) ? NOTHING : planSync(set, pods, revisions, now, isTaken);
  const dueAt = Math.min(...pods.map((pod) => availableAt(pod, set.spec.minReadySeconds)).filter((at) => at > now));
  return {
    changes: [
      ...claimed.flatMap(({ changes }) => changes),
      ...revisions.changes,
      ...create.slice(0, room).map((pod) => {
        const status: Pod["status"] = { phase: "Pending", qosClass: "BestEffort" };
        return { verb: "create", resource: "pods", object: { ...pod, status } } as const;
      }),
      ...identify.map((pod) => ({ verb: "update", resource: "pods", object: withIdentity(pod) }) as const),
      ...remove
        .filter(({ metadata }) => metadata.annotations?.["sim/kept"] === undefined)
        .map((pod) => ({ verb: "remove", resource: "pods", object: pod }) as const),
      // The status comes last: once a client sees the generation observed, it also sees the changes to pods.
      { verb: "update", resource: STATEFUL_SETS, object: { ...set, status: statusOf(set, pods, revisions, now) } },
    ],
    nextMs: dueAt === Infinity ? undefined : dueAt - now,
  };
}

/**
 * Keeps a pod that the set controls; adopts one without an owner that matches, and releases one that no longer does.
 * Source: PodControllerRefManager.
 */
function claim(set: StatefulSet, pod: Pod): { readonly own?: Pod; readonly changes: readonly Change[] } {
  const owner = controllerOf(pod);
  const { labels = {}, ownerReferences = [], name } = pod.metadata;
  const fits = objectSelector(set.spec.selector)(labels) && name.replace(/-\d+$/, "") === set.metadata.name;
  const refer = (references: readonly OwnerReference[]) => {
    const object = put(pod, ["metadata", "ownerReferences"], references.length > 0 ? references : undefined);
    return { object, changes: [{ verb: "update", resource: "pods", object } as const] };
  };
  if (owner) {
    if (owner.uid !== set.metadata.uid) return { changes: [] };
    if (fits) return { own: pod, changes: [] };
    if (isTerminating(set)) return { changes: [] };
    return { changes: refer(ownerReferences.filter(({ uid }) => uid !== owner.uid)).changes };
  }
  if (isTerminating(pod) || isTerminating(set) || !fits) return { changes: [] };
  const { object, changes } = refer([...ownerReferences, controllerReference(set)]);
  return { own: object, changes };
}
