/** Creates a StatefulSet, changes it, and records the states of its pods. */
import { dig, isTrue } from "../../emulator/objects.ts";
import type { WatchEvent } from "./client.ts";
import { at, del, get, patch, post, statefulSet, STRATEGIC, type SetOptions } from "./requests.ts";
import type { RecordedWatch, Stage } from "./stage.ts";

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
export async function createSet(stage: Stage, options: SetOptions): Promise<SetUnderTest> {
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
