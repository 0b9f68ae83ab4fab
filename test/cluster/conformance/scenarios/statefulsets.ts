/**
 * The lifecycle of StatefulSets: the order and revisions of their pods, and the status whenever they are
 * settled.
 */
import { dig, isTrue, listOf } from "../../../emulator/objects.ts";
import type { WatchEvent } from "../client.ts";
import { STRATEGIC, type SetOptions, at, del, get, patch, post, statefulSet } from "../requests.ts";
import type { RecordedWatch, Scenario, Stage } from "../stage.ts";

interface Status {
  readonly observedGeneration?: number;
  readonly replicas?: number;
  readonly readyReplicas?: number;
  readonly availableReplicas?: number;
  readonly currentReplicas?: number;
  readonly updatedReplicas?: number;
  readonly currentRevision?: string;
  readonly updateRevision?: string;
}

interface SetUnderTest {
  readonly path: string;
  change(template: { image: string }): Promise<void>;
  replace(spec: object): Promise<void>;
  /** Deletes a pod, and waits for the event. */
  removePod(name: string): Promise<void>;
  /**
   * Waits until the set is settled with `ready` ready pods and a status of the newest generation, then
   * records the changes of the status and of pods.
   */
  settled(step: string, ready: number, also?: (status: Status) => boolean): Promise<void>;
  untilGone(name: string, pod: unknown): Promise<void>;
  untilDeleted(): Promise<void>;
}

/** Creates the StatefulSet "z". */
async function createSet(stage: Stage, options: SetOptions): Promise<SetUnderTest> {
  const all = at(stage.namespace, "statefulsets");
  const path = `${all}/z`;
  const sets = await stage.watch(`${all}?watch=1`);
  const pods = await stage.watch(`${at(stage.namespace, "pods")}?watch=1`);
  let recorded = 0;
  await stage.send(post(all, statefulSet("z", options)));
  return {
    path,
    change: async ({ image }) =>
      void (await stage.send(
        patch(path, { spec: { template: { spec: { containers: [{ name: "main", image }] } } } }, STRATEGIC),
      )),
    replace: async (spec) => void (await stage.send(patch(path, { spec }))),
    removePod: async (name) => {
      const { body } = await stage.send(del(at(stage.namespace, "pods", name)));
      const uid = dig(body, "metadata", "uid");
      await pods.until((events) =>
        events.some(
          ({ object }) =>
            dig(object, "metadata", "uid") === uid && dig(object, "metadata", "deletionTimestamp") !== undefined,
        ),
      );
    },
    settled: async (step, ready, also = () => true) => {
      const { body } = await stage.send(get(path));
      const generation = Number(dig(body, "metadata", "generation"));
      await untilSettled(
        sets,
        pods,
        (status) =>
          (status.observedGeneration ?? 0) >= generation && (status.readyReplicas ?? 0) === ready && also(status),
      );
      stage.record(`${step}: pods`, podHistories(pods.events.slice(recorded), pods.events.slice(0, recorded)));
      recorded = pods.events.length;
      stage.recordChanges(`${step}: status`, "status", dig(sets.events.at(-1)?.object, "status"));
    },
    untilGone: async (name, pod) => {
      const uid = dig(pod, "metadata", "uid");
      await pods.until((events) =>
        events.some(({ type, object }) => type === "DELETED" && dig(object, "metadata", "uid") === uid),
      );
      stage.record(`${name} was removed`, true);
    },
    untilDeleted: async () => void (await sets.until((events) => events.at(-1)?.type === "DELETED")),
  };
}

/**
 * Waits until `matches` accepts the status, its counts are those of the watched pods, and no pod is
 * terminating.
 */
async function untilSettled(
  sets: RecordedWatch,
  pods: RecordedWatch,
  matches: (status: Status) => boolean,
): Promise<void> {
  const isSettled = (): boolean => {
    const last = sets.events.at(-1);
    const status = (dig(last?.object, "status") ?? {}) as Status;
    const latest = new Map(pods.events.map((event) => [dig(event.object, "metadata", "uid"), event]));
    const alive = [...latest.values()].filter(({ type }) => type !== "DELETED");
    const countAt = (revision: string | undefined): number =>
      alive.filter(({ object }) => dig(object, "metadata", "labels", "controller-revision-hash") === revision).length;
    return (
      last?.type !== "DELETED" &&
      matches(status) &&
      alive.every(({ object }) => dig(object, "metadata", "deletionTimestamp") === undefined) &&
      alive.length === status.replicas &&
      alive.filter(({ object }) => isTrue(object, "Ready")).length === (status.readyReplicas ?? 0) &&
      countAt(status.updateRevision) === (status.updatedReplicas ?? 0) &&
      countAt(status.currentRevision) === (status.currentReplicas ?? 0) &&
      alive.every(({ object }) => dig(object, "status", "phase") === "Running")
    );
  };
  await Promise.race([sets.until(isSettled), pods.until(isSettled)]);
  sets.cancelWaits();
  pods.cancelWaits();
}

/** The states of each pod; pods in order of their first change. */
function podHistories(events: readonly WatchEvent[], earlier: readonly WatchEvent[]): string[] {
  const states = new Map<unknown, string>();
  for (const event of earlier) states.set(dig(event.object, "metadata", "uid"), stateOf(event));
  const lines = new Map<unknown, string[]>();
  for (const event of events) {
    const uid = dig(event.object, "metadata", "uid");
    const state = stateOf(event);
    if (states.get(uid) === state) continue;
    states.set(uid, state);
    const line = lines.get(uid) ?? [String(dig(event.object, "metadata", "name"))];
    lines.set(uid, [...line, state]);
  }
  return [...lines.values()].map(([name = "", ...steps]) => `${name}: ${steps.join(" > ")}`);
}

function stateOf({ type, object }: WatchEvent): string {
  if (type === "DELETED") return "gone";
  if (dig(object, "metadata", "deletionTimestamp") !== undefined)
    return isTrue(object, "Ready") ? "terminating, still ready" : "terminating";
  if (isTrue(object, "Ready")) return "ready";
  return `${String(dig(object, "status", "phase"))}${dig(object, "spec", "nodeName") ? ", bound" : ""} at ${String(dig(object, "metadata", "labels", "controller-revision-hash"))}`;
}

const ON_DELETE = { updateStrategy: { type: "OnDelete" } };
const AT_ONCE = { ...ON_DELETE, podManagementPolicy: "Parallel" };

export const statefulSets: readonly Scenario[] = [
  {
    name: "OnDelete: a deleted pod is recreated updated; a revert reuses the old revision",
    run: async (stage) => {
      const set = await createSet(stage, { replicas: 2, spec: AT_ONCE });
      await set.settled("created", 2);
      await stage.call(
        "a pod of it",
        get(at(stage.namespace, "pods", "z-1")),
        "metadata.labels",
        "metadata.ownerReferences",
        "metadata.generateName",
        "metadata.generation",
        "spec.hostname",
        "spec.subdomain",
        "spec.nodeName",
        "status.phase",
        "status.qosClass",
      );
      await set.change({ image: "app:2" });
      await set.settled("template changed: nothing moves", 2);
      await set.removePod("z-1");
      await set.settled("a pod deleted", 2);
      await set.change({ image: "app:1" });
      await set.settled("reverted", 2);
      await set.removePod("z-1");
      await set.settled("the pod deleted again", 2);
      await revisions(stage);
      await set.change({ image: "app:3" });
      await set.removePod("z-0");
      await set.settled("a new template and pod", 2);
      await set.removePod("z-1");
      await set.settled("all pods new: the current revision stays", 2);
      await revisions(stage);
    },
  },
  {
    name: "RollingUpdate with a partition: pods are updated from the highest down to the partition, one at a time",
    run: async (stage) => {
      // The API server drops maxUnavailable: its feature is off.
      const set = await createSet(stage, {
        replicas: 3,
        spec: { updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: 1, maxUnavailable: 2 } } },
      });
      await set.settled("created", 3);
      await set.change({ image: "app:2" });
      await set.settled("updated down to the partition", 3, (status) => status.updatedReplicas === 2);
      await set.removePod("z-0");
      await set.settled("a pod below the partition comes back as it was", 3);
      await set.replace({ updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: 0 } } });
      await set.settled(
        "partition gone",
        3,
        (status) => status.updatedReplicas === 3 && status.currentRevision === status.updateRevision,
      );
    },
  },
  {
    name: "OrderedReady: a pod that is not ready delays the next one, and the update",
    run: async (stage) => {
      const set = await createSet(stage, { replicas: 3, annotations: { "sim/ready": "false" } });
      await set.settled("the first is not ready", 0, (status) => status.replicas === 1);
      await turnReady(stage, "z-0");
      await set.settled("then the second is made", 1, (status) => status.replicas === 2);
      await set.change({ image: "app:2" });
      await set.settled(
        "an update waits for the broken pod",
        1,
        (status) => status.replicas === 2 && status.observedGeneration === 2,
      );
      await turnReady(stage, "z-1");
      await set.settled(
        "the third is made of the new revision",
        2,
        (status) => status.replicas === 3 && status.updatedReplicas === 1,
      );
    },
  },
  {
    name: "a downscale deletes the highest pods first, one at a time; an upscale creates the lowest first",
    run: async (stage) => {
      const set = await createSet(stage, { replicas: 4, spec: ON_DELETE });
      await set.settled("created", 4);
      await set.replace({ replicas: 1 });
      await set.settled("scaled down", 1);
      await set.replace({ replicas: 3 });
      await set.settled("scaled up", 3);
    },
  },
  {
    name: "Parallel scaling, spec.ordinals.start and minReadySeconds",
    run: async (stage) => {
      const set = await createSet(stage, {
        replicas: 2,
        spec: { ...AT_ONCE, minReadySeconds: 1, ordinals: { start: 5 } },
      });
      await set.settled("created", 2, (status) => status.availableReplicas === 2);
      await set.replace({ ordinals: { start: 6 } });
      await set.settled(
        "moved by one",
        2,
        (status) => status.replicas === 2 && status.observedGeneration === 2 && status.availableReplicas === 2,
      );
      await recordPods(stage, "pods", "metadata", "labels", "apps.kubernetes.io/pod-index");
    },
  },
  {
    name: "a failed pod is replaced",
    run: async (stage) => {
      const set = await createSet(stage, { replicas: 1, spec: AT_ONCE });
      await set.settled("created", 1);
      const before = await stage.send(get(at(stage.namespace, "pods", "z-0")));
      await stage.send(patch(at(stage.namespace, "pods", "z-0", "status"), { status: { phase: "Failed" } }));
      await set.untilGone("z-0", before.body);
      await set.settled("replaced", 1);
    },
  },
  {
    name: "pods outlive an orphaning delete and are adopted again",
    run: async (stage) => {
      const set = await createSet(stage, { replicas: 2, spec: AT_ONCE });
      await set.settled("created", 2);
      await stage.call(
        "delete only the StatefulSet",
        del(set.path, { propagationPolicy: "Orphan" }),
        "metadata.finalizers",
      );
      await set.untilDeleted();
      await recordPods(stage, "orphans", "metadata", "ownerReferences");
      await stage.send(post(at(stage.namespace, "statefulsets"), statefulSet("z", { replicas: 2, spec: AT_ONCE })));
      await set.settled("adopted", 2);
    },
  },
];

const turnReady = (stage: Stage, pod: string): Promise<unknown> =>
  stage.send(patch(at(stage.namespace, "pods", pod), { metadata: { annotations: { "sim/ready": "true" } } }));

/** The names of all pods, and this field of each. */
async function recordPods(stage: Stage, step: string, ...field: readonly string[]): Promise<void> {
  const { body } = await stage.send(get(at(stage.namespace, "pods")));
  const rows = listOf(dig(body, "items")).map((pod) => [dig(pod, "metadata", "name"), dig(pod, ...field)]);
  stage.record(step, rows);
}

async function revisions(stage: Stage): Promise<void> {
  const { body } = await stage.send(get(at(stage.namespace, "controllerrevisions")));
  const rows = listOf(dig(body, "items")).map((item) => [
    dig(item, "metadata", "name"),
    dig(item, "revision"),
    dig(item, "metadata", "labels"),
  ]);
  stage.record("revisions", rows);
}
