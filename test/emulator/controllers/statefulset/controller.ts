/** The StatefulSet controller: reacts to sets and their pods, a few milliseconds late as the real one, and carries out the plan. */
import type { Clock } from "../../clock.ts";
import { objectSelector } from "../../selectors.ts";
import type { Store, StoreEvent } from "../../store.ts";
import { indexBy, type Index } from "../index-by.ts";
import { controllerOf, type Pod, type Revision, type StatefulSet } from "../objects.ts";
import { createQueue, type WorkQueue } from "../queue.ts";
import { recordEvents, type Recorder } from "../events.ts";
import { claimPods } from "./claim.ts";
import { planSync, type Plan } from "./plan.ts";
import { syncRevisions, trimHistory } from "./revisions.ts";
import { asWritten, availableAt, differs, statusOf } from "./status.ts";

const REACTION_MS = 3;
const SETS = "statefulsets.apps";

/** Runs until the answer is called. */
export function runStatefulSets(store: Store, clock: Clock): () => void {
  const owned = indexBy(store, ["pods", "controllerrevisions.apps"], (resource, object) => {
    if (resource !== "pods" && resource !== "controllerrevisions.apps") return [];
    const owner = controllerOf(object);
    return [owner ? `${resource}/${owner.uid}` : `${resource}/orphans/${object.metadata.namespace}`];
  });
  const record = recordEvents(store, clock, "statefulset-controller");
  const queue = createQueue(clock, REACTION_MS, (key) => {
    const [namespace, name = ""] = key.split("/");
    const set = store.get(SETS, namespace, name) as StatefulSet | undefined;
    if (set) sync(store, clock, owned, record, queue, set);
  });
  for (const set of store.list(SETS)) queue.add(keyOf(set.metadata));
  const unsubscribe = store.subscribe((event) => {
    for (const key of concerned(store, event)) queue.add(key);
  });
  return () => {
    unsubscribe();
    owned.stop();
    queue.stop();
  };
}

/** The sets that an event is of interest to; an orphan interests all that could adopt it. */
function concerned(store: Store, { resource, type, object }: StoreEvent): string[] {
  const { namespace } = object.metadata;
  if (resource === SETS) return [keyOf(object.metadata)];
  if (resource !== "pods") return [];
  const owner = controllerOf(object);
  if (owner) return owner.kind === "StatefulSet" ? [keyOf({ namespace, name: owner.name })] : [];
  if (type === "DELETED") return [];
  const sets = store.list(SETS, namespace) as StatefulSet[];
  return sets.filter((set) => objectSelector(set.spec.selector)(object.metadata.labels ?? {})).map((set) => keyOf(set.metadata));
}

function sync(store: Store, clock: Clock, owned: Index, record: Recorder, queue: WorkQueue, set: StatefulSet): void {
  const now = clock.now();
  const { uid, namespace } = set.metadata;
  const pods = claimPods(store, set, owned.get(`pods/${uid}`) as Pod[], owned.get(`pods/orphans/${namespace}`) as Pod[]);
  const revisions = syncRevisions(store, set, owned.get(`controllerrevisions.apps/${uid}`) as Revision[]);
  const plan = planSync(set, pods, revisions.current, revisions.update, now);
  const status = statusOf(set, pods, revisions, now, plan.updating);
  try {
    carryOut(store, record, set, plan);
  } finally {
    if (differs(set.status, status)) writeStatus(store, set, asWritten(status));
  }
  trimHistory(store, set, revisions, pods);
  const minReadySeconds = set.spec.minReadySeconds ?? 0;
  if (minReadySeconds === 0 || status.readyReplicas === status.availableReplicas) return;
  const nextCheck = Math.min(...pods.map((pod) => availableAt(pod, minReadySeconds)).filter((at) => at > now));
  queue.add(keyOf(set.metadata), Math.min(nextCheck - now, minReadySeconds * 1000));
}

function carryOut(store: Store, record: Recorder, set: StatefulSet, plan: Plan): void {
  for (const pod of plan.create) {
    store.create("pods", { ...pod, status: { phase: "Pending", qosClass: "BestEffort" } });
    record(set, "SuccessfulCreate", `Create Pod ${pod.metadata.name} in StatefulSet ${set.metadata.name} successful`);
  }
  for (const pod of plan.repair) {
    store.update("pods", pod);
    record(set, "SuccessfulUpdate", `Update Pod ${pod.metadata.name} in StatefulSet ${set.metadata.name} successful`);
  }
  for (const { metadata } of plan.remove) {
    store.remove("pods", metadata.namespace, metadata.name);
    record(set, "SuccessfulDelete", `Delete Pod ${metadata.name} in StatefulSet ${set.metadata.name} successful`);
  }
}

function writeStatus(store: Store, { metadata }: StatefulSet, status: StatefulSet["status"]): void {
  const latest = store.get(SETS, metadata.namespace, metadata.name);
  if (latest?.metadata.uid === metadata.uid) store.update(SETS, { ...latest, status });
}

function keyOf({ namespace, name }: { namespace?: string | undefined; name: string }): string {
  return `${namespace}/${name}`;
}
