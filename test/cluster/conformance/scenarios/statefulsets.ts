/** The life of StatefulSets: which pods come and go in which order, at which revision, and what the status says at each rest. */
import { dig, listOf } from "../../../emulator/objects.ts";
import type { WatchEvent } from "../client.ts";
import { at, del, get, patch, post, statefulSet, STRATEGIC, type SetOptions } from "../requests.ts";
import type { Scenario, Stage, Watching } from "../stage.ts";

const ON_DELETE = { updateStrategy: { type: "OnDelete" } };
const PARALLEL = { podManagementPolicy: "Parallel" };

export const statefulSets: readonly Scenario[] = [
  {
    name: "OnDelete: a pod is renewed when it is deleted; a revert finds the old revision again",
    run: async (stage) => {
      const set = await create(stage, { replicas: 2, spec: { ...ON_DELETE, ...PARALLEL } });
      await set.rest("created", 2);
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
      await set.rest("template changed: nothing moves", 2);
      await set.removePod("z-1");
      await set.rest("a pod deleted", 2);
      await set.change({ image: "app:1" });
      await set.rest("reverted", 2);
      await set.removePod("z-1");
      await set.rest("the pod deleted again", 2);
      await revisions(stage);
      await set.change({ image: "app:3" });
      await set.removePod("z-0");
      await set.rest("a new template and pod", 2);
      await set.removePod("z-1");
      await set.rest("all pods new: the current revision stays", 2);
      await revisions(stage);
    },
  },
  {
    name: "RollingUpdate with a partition: from the top, one at a time, down to the partition",
    run: async (stage) => {
      const set = await create(stage, {
        replicas: 3,
        spec: { updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: 1 } } },
      });
      await set.rest("created", 3);
      await set.change({ image: "app:2" });
      await set.rest("updated down to the partition", 3, (status) => status.updatedReplicas === 2);
      await set.removePod("z-0");
      await set.rest("a pod below the partition comes back as it was", 3);
      await set.replace({ updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: 0 } } });
      await set.rest("partition gone", 3, (status) => status.updatedReplicas === 3 && status.currentRevision === status.updateRevision);
    },
  },
  {
    name: "OrderedReady: a pod that is not ready holds the next back, and the update too",
    run: async (stage) => {
      const set = await create(stage, { replicas: 3, annotations: { "sim/ready": "false" } });
      await set.rest("the first is not ready", 0, (status) => status.replicas === 1);
      await stage.quietly(patch(at(stage.namespace, "pods", "z-0"), { metadata: { annotations: { "sim/ready": "true" } } }));
      await set.rest("then the second is made", 1, (status) => status.replicas === 2);
      await set.change({ image: "app:2" });
      await set.rest("an update waits for the broken pod", 1, (status) => status.replicas === 2 && status.observedGeneration === 2);
      await stage.quietly(patch(at(stage.namespace, "pods", "z-1"), { metadata: { annotations: { "sim/ready": "true" } } }));
      await set.rest("the third is made of the new revision", 2, (status) => status.replicas === 3 && status.updatedReplicas === 1);
    },
  },
  {
    name: "scaling down goes from the top, one at a time; scaling up from the bottom",
    run: async (stage) => {
      const set = await create(stage, { replicas: 4, spec: { ...ON_DELETE } });
      await set.rest("created", 4);
      await set.replace({ replicas: 1 });
      await set.rest("scaled down", 1);
      await set.replace({ replicas: 3 });
      await set.rest("scaled up", 3);
    },
  },
  {
    name: "Parallel scaling, ordinals that start later, and seconds to be available",
    run: async (stage) => {
      const set = await create(stage, { replicas: 2, spec: { ...ON_DELETE, ...PARALLEL, minReadySeconds: 1, ordinals: { start: 5 } } });
      await set.rest("created", 2, (status) => status.availableReplicas === 2);
      await set.replace({ ordinals: { start: 6 } });
      await set.rest(
        "moved by one",
        2,
        (status) => status.replicas === 2 && status.observedGeneration === 2 && status.availableReplicas === 2,
      );
      const { body } = await stage.quietly(get(at(stage.namespace, "pods")));
      stage.note(
        "pods",
        listOf(dig(body, "items")).map((pod) => [
          dig(pod, "metadata", "name"),
          dig(pod, "metadata", "labels", "apps.kubernetes.io/pod-index"),
        ]),
      );
    },
  },
  {
    name: "a failed pod is replaced",
    run: async (stage) => {
      const set = await create(stage, { replicas: 1, spec: { ...ON_DELETE, ...PARALLEL } });
      await set.rest("created", 1);
      const before = await stage.quietly(get(at(stage.namespace, "pods", "z-0")));
      await stage.quietly(patch(at(stage.namespace, "pods", "z-0", "status"), { status: { phase: "Failed" } }));
      await set.untilGone("z-0", before.body);
      await set.rest("replaced", 1);
    },
  },
  {
    name: "pods outlive an orphaning delete and are adopted again",
    run: async (stage) => {
      const set = await create(stage, { replicas: 2, spec: { ...ON_DELETE, ...PARALLEL } });
      await set.rest("created", 2);
      await stage.call("delete the set alone", del(set.path, { propagationPolicy: "Orphan" }), "metadata.finalizers");
      await set.untilDeleted();
      const { body } = await stage.quietly(get(at(stage.namespace, "pods")));
      stage.note(
        "orphans",
        listOf(dig(body, "items")).map((pod) => [dig(pod, "metadata", "name"), dig(pod, "metadata", "ownerReferences")]),
      );
      await stage.quietly(
        post(at(stage.namespace, "statefulsets"), statefulSet("z", { replicas: 2, spec: { ...ON_DELETE, ...PARALLEL } })),
      );
      await set.rest("adopted", 2);
    },
  },
];

interface Status {
  readonly observedGeneration?: number;
  readonly replicas?: number;
  readonly readyReplicas?: number;
  readonly availableReplicas?: number;
  readonly updatedReplicas?: number;
  readonly currentRevision?: string;
  readonly updateRevision?: string;
}

interface Playing {
  readonly path: string;
  change(template: { image: string }): Promise<void>;
  replace(spec: object): Promise<void>;
  /** Deletes a pod, and waits until its deletion has been seen. */
  removePod(name: string): Promise<void>;
  /** Waits until `ready` pods are ready, the status is of the newest generation and no pod is on its way out, then notes what came and went, and the status. */
  rest(step: string, ready: number, also?: (status: Status) => boolean): Promise<void>;
  untilGone(name: string, pod: unknown): Promise<void>;
  untilDeleted(): Promise<void>;
}

async function create(stage: Stage, options: SetOptions): Promise<Playing> {
  const all = at(stage.namespace, "statefulsets");
  const path = `${all}/z`;
  const sets = await stage.watch(`${all}?watch=1`);
  const pods = await stage.watch(`${at(stage.namespace, "pods")}?watch=1`);
  let told = 0;
  await stage.quietly(post(all, statefulSet("z", options)));
  return {
    path,
    change: async ({ image }) =>
      void (await stage.quietly(patch(path, { spec: { template: { spec: { containers: [{ name: "main", image }] } } } }, STRATEGIC))),
    replace: async (spec) => void (await stage.quietly(patch(path, { spec }))),
    removePod: async (name) => {
      const { body } = await stage.quietly(del(at(stage.namespace, "pods", name)));
      const uid = dig(body, "metadata", "uid");
      await pods.until((events) =>
        events.some(({ object }) => dig(object, "metadata", "uid") === uid && dig(object, "metadata", "deletionTimestamp") !== undefined),
      );
    },
    rest: async (step, ready, also = () => true) => {
      const { body } = await stage.quietly(get(path));
      const generation = Number(dig(body, "metadata", "generation"));
      await atRest(
        sets,
        pods,
        (status) => (status.observedGeneration ?? 0) >= generation && (status.readyReplicas ?? 0) === ready && also(status),
      );
      stage.note(`${step}: pods`, milestones(pods.events.slice(told), pods.events.slice(0, told)));
      told = pods.events.length;
      stage.note(`${step}: status`, dig(sets.events.at(-1)?.object, "status"));
    },
    untilGone: async (name, pod) => {
      const uid = dig(pod, "metadata", "uid");
      await pods.until((events) => events.some(({ type, object }) => type === "DELETED" && dig(object, "metadata", "uid") === uid));
      stage.note(`${name} was removed`, true);
    },
    untilDeleted: async () => void (await sets.until((events) => events.at(-1)?.type === "DELETED")),
  };
}

/** At rest: the last status fits, its counts are those of the pods as watched, and no pod is terminating. */
async function atRest(sets: Watching, pods: Watching, fits: (status: Status) => boolean): Promise<void> {
  const isAtRest = (): boolean => {
    const last = sets.events.at(-1);
    const status = (dig(last?.object, "status") ?? {}) as Status;
    const latest = new Map(pods.events.map((event) => [dig(event.object, "metadata", "uid"), event]));
    const alive = [...latest.values()].filter(({ type }) => type !== "DELETED");
    const revisionOf = (event: WatchEvent): unknown => dig(event.object, "metadata", "labels", "controller-revision-hash");
    return (
      last?.type !== "DELETED" &&
      fits(status) &&
      alive.every(({ object }) => dig(object, "metadata", "deletionTimestamp") === undefined) &&
      alive.length === status.replicas &&
      alive.filter(({ object }) => isReady(object)).length === (status.readyReplicas ?? 0) &&
      alive.filter((event) => revisionOf(event) === status.updateRevision).length === (status.updatedReplicas ?? 0) &&
      alive.every(({ object }) => dig(object, "status", "phase") === "Running")
    );
  };
  await Promise.race([sets.until(isAtRest), pods.until(isAtRest)]);
  sets.giveUp();
  pods.giveUp();
}

function isReady(object: object): boolean {
  return listOf(dig(object, "status", "conditions")).some(
    (condition) => dig(condition, "type") === "Ready" && dig(condition, "status") === "True",
  );
}

/** What each pod went through, pods in the order in which they first moved. */
function milestones(events: readonly WatchEvent[], earlier: readonly WatchEvent[]): string[] {
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
  if (dig(object, "metadata", "deletionTimestamp") !== undefined) return isReady(object) ? "terminating, still ready" : "terminating";
  if (isReady(object)) return "ready";
  return `${String(dig(object, "status", "phase"))}${dig(object, "spec", "nodeName") ? ", bound" : ""} at ${String(dig(object, "metadata", "labels", "controller-revision-hash"))}`;
}

async function revisions(stage: Stage): Promise<void> {
  const { body } = await stage.quietly(get(at(stage.namespace, "controllerrevisions")));
  const rows = listOf(dig(body, "items")).map((item) => [
    dig(item, "metadata", "name"),
    dig(item, "revision"),
    dig(item, "metadata", "labels"),
  ]);
  stage.note("revisions", rows);
}
