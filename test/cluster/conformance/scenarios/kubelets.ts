/** What steers a simulated pod, on both kubelets: readiness on demand, crashes, gates, and the time to leave. */
import { dig, listOf, textOf } from "../../../emulator/objects.ts";
import { at, del, patch, pod, post } from "../requests.ts";
import type { Scenario, Stage, Watching } from "../stage.ts";

export const kubelets: readonly Scenario[] = [
  {
    name: "a pod turns not ready when told to, and ready again",
    run: async (stage) => {
      const seen = await start(stage, "a", pod("a"));
      await seen.until("Ready=True");
      await stage.quietly(annotate(stage, "a", { "sim/ready": "false" }));
      await seen.until("Ready=False");
      await stage.quietly(annotate(stage, "a", { "sim/ready": "true" }));
      await seen.until("Ready=True");
      stage.note("what it went through", seen.states());
    },
  },
  {
    name: "a crashing pod waits in CrashLoopBackOff until it no longer crashes",
    run: async (stage) => {
      const seen = await start(stage, "a", pod("a", { annotations: { "sim/crash": "true" } }));
      await seen.until("CrashLoopBackOff");
      stage.note("its containers", seen.last("status", "containerStatuses"));
      await stage.quietly(annotate(stage, "a", { "sim/crash": "false" }));
      await seen.until("Ready=True");
      stage.note("what it went through", seen.states());
      stage.note("its containers then", seen.last("status", "containerStatuses"));
    },
  },
  {
    name: "a readiness gate holds a pod back, and again when it closes",
    run: async (stage) => {
      const seen = await start(stage, "a", pod("a", {}, { readinessGates: [{ conditionType: "example.com/open" }] }));
      await seen.until("ContainersReady=True Ready=False");
      const gate = (status: string) =>
        patch(at(stage.namespace, "pods", "a", "status"), {
          status: {
            conditions: [
              ...listOf(seen.last("status", "conditions")).filter((condition) => dig(condition, "type") !== "example.com/open"),
              { type: "example.com/open", status },
            ],
          },
        });
      await stage.quietly(gate("True"));
      await seen.until("Ready=True example.com/open=True");
      await stage.quietly(gate("False"));
      await seen.until("Ready=False example.com/open=False");
      stage.note("what it went through", seen.states());
    },
  },
  {
    name: "a pod on its way out stays ready until it is gone",
    run: async (stage) => {
      const seen = await start(stage, "a", pod("a"));
      await seen.until("Ready=True");
      await stage.quietly(del(at(stage.namespace, "pods", "a")));
      await seen.until("DELETED");
      stage.note("what it went through", seen.states());
    },
  },
];

interface Seen {
  /** Waits for a state that ends so; states of before the last wait do not count. */
  until(state: string): Promise<void>;
  states(): string[];
  last(...path: string[]): unknown;
}

async function start(stage: Stage, name: string, object: object): Promise<Seen> {
  const watching: Watching = await stage.watch(`${at(stage.namespace, "pods")}?watch=1&fieldSelector=metadata.name%3D${name}`);
  let from = 0;
  await stage.quietly(post(at(stage.namespace, "pods"), object));
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
  return [String(dig(object, "status", "phase")), ...conditions, ...waiting, ...leaving].filter((part) => part !== "").join(" ");
}

function annotate(stage: Stage, name: string, annotations: Record<string, string>): ReturnType<typeof patch> {
  return patch(at(stage.namespace, "pods", name), { metadata: { annotations } });
}
