/**
 * The annotations of simulated pods, on both kubelets: readiness, crashes, readiness gates and termination.
 */
import { dig, listOf, textOf } from "../../../emulator/objects.ts";
import { at, del, patch, pod, post } from "../requests.ts";
import type { Scenario, Stage, RecordedWatch } from "../stage.ts";

export const kubelets: readonly Scenario[] = [
  {
    name: "a pod becomes not ready by its annotation, and ready again",
    run: async (stage) => {
      const seen = await start(stage, "a", pod("a"));
      await seen.until("Ready=True");
      await stage.send(annotate(stage, "a", { "sim/ready": "false" }));
      await seen.until("Ready=False");
      await stage.send(annotate(stage, "a", { "sim/ready": "true" }));
      await seen.until("Ready=True");
      stage.record("its states", seen.states());
    },
  },
  {
    name: "a crashing pod waits in CrashLoopBackOff until it no longer crashes",
    run: async (stage) => {
      const seen = await start(stage, "a", pod("a", { annotations: { "sim/crash": "true" } }));
      await seen.until("CrashLoopBackOff");
      stage.record("its containers", seen.last("status", "containerStatuses"));
      await stage.send(annotate(stage, "a", { "sim/crash": "false" }));
      await seen.until("Ready=True");
      stage.record("its states", seen.states());
      stage.record("its containers then", seen.last("status", "containerStatuses"));
    },
  },
  {
    name: "a readiness gate delays Ready, and revokes it when it closes",
    run: async (stage) => {
      const seen = await start(stage, "a", pod("a", {}, { readinessGates: [{ conditionType: "example.com/open" }] }));
      await seen.until("ContainersReady=True Ready=False");
      const gate = (status: string) =>
        patch(at(stage.namespace, "pods", "a", "status"), {
          status: {
            conditions: [
              ...listOf(seen.last("status", "conditions")).filter(
                (condition) => dig(condition, "type") !== "example.com/open",
              ),
              { type: "example.com/open", status },
            ],
          },
        });
      await stage.send(gate("True"));
      await seen.until("Ready=True example.com/open=True");
      await stage.send(gate("False"));
      await seen.until("Ready=False example.com/open=False");
      stage.record("its states", seen.states());
    },
  },
  {
    name: "a terminating pod stays ready until it is removed",
    run: async (stage) => {
      const seen = await start(stage, "a", pod("a"));
      await seen.until("Ready=True");
      await stage.send(del(at(stage.namespace, "pods", "a")));
      await seen.until("DELETED");
      stage.record("its states", seen.states());
    },
  },
];

interface PodWatch {
  /** Waits for a state that contains the text, after the states of the last wait. */
  until(state: string): Promise<void>;
  states(): string[];
  last(...path: string[]): unknown;
}

async function start(stage: Stage, name: string, object: object): Promise<PodWatch> {
  const watching: RecordedWatch = await stage.watch(
    `${at(stage.namespace, "pods")}?watch=1&fieldSelector=metadata.name%3D${name}`,
  );
  let from = 0;
  await stage.send(post(at(stage.namespace, "pods"), object));
  return {
    until: async (state) => {
      await watching.until((events) => events.slice(from).some((event) => stateOf(event).includes(state)));
      from = watching.events.length;
    },
    states: () => watching.events.map(stateOf).filter((state, index, all) => state !== all[index - 1]),
    last: (...path) => dig(watching.events.at(-1)?.object, ...path),
  };
}

function stateOf({ type, object }: { type: string; object: object }): string {
  if (type === "DELETED") return "DELETED";
  const conditions = listOf(dig(object, "status", "conditions")).map(
    (condition) => `${String(dig(condition, "type"))}=${String(dig(condition, "status"))}`,
  );
  const waiting = listOf(dig(object, "status", "containerStatuses")).map(
    (status) => textOf(dig(status, "state", "waiting", "reason")) ?? "",
  );
  const leaving = dig(object, "metadata", "deletionTimestamp") === undefined ? [] : ["leaving"];
  return [String(dig(object, "status", "phase")), ...conditions, ...waiting, ...leaving]
    .filter((part) => part !== "")
    .join(" ");
}

function annotate(stage: Stage, name: string, annotations: Record<string, string>): ReturnType<typeof patch> {
  return patch(at(stage.namespace, "pods", name), { metadata: { annotations } });
}
