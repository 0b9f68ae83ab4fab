/** Ticks of runs that are cut after 55 s reach every group, and resync those that they have reached. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Cluster } from "../../../infra/kubernetes/cluster.ts";
import { createGroupTurns } from "../../../reconciler/run/group-turns.ts";
import { createResync, resyncedThrough } from "../../../reconciler/run/resync.ts";
import { createSteps } from "../../../reconciler/run/steps.ts";
import { tick, type TickInput } from "../../../reconciler/run/tick.ts";
import { manualClock } from "../../emulator/clock.ts";
import { clockOf, noChecks, noMaintenance, noPhases, scalingOf } from "../stage.ts";

const RUN_MS = 55_000;

/** A zone of one pod which is not ready, so that each step lists its pods. */
const zoneOf = (namespace: string) => ({
  metadata: {
    name: "g-zone-a",
    namespace,
    uid: namespace,
    generation: 1,
    resourceVersion: "5",
    labels: { "rollout-group": "g" },
    annotations: {},
  },
  spec: {
    replicas: 3,
    serviceName: "g",
    updateStrategy: { type: "OnDelete" },
    selector: { matchLabels: { name: "g-zone-a" } },
    template: { metadata: { labels: { name: "g-zone-a" } }, spec: { containers: [] } },
  },
  status: {
    observedGeneration: 1,
    replicas: 3,
    readyReplicas: 2,
    updatedReplicas: 3,
    currentReplicas: 3,
    currentRevision: "r1",
    updateRevision: "r1",
  },
});

/** Plays runs of 55 s for so many minutes, in which each list of pods takes `listMs`. */
async function play(
  namespaces: readonly string[],
  { listMs, minutes }: { readonly listMs: number; readonly minutes: number },
) {
  const time = manualClock();
  const clock = clockOf(time);
  const looks = new Map(namespaces.map((namespace) => [namespace, 0]));
  const list = async function* (
    { plural }: { plural: string },
    { namespace = "" }: { namespace?: string },
  ): AsyncGenerator {
    if (plural === "statefulsets") {
      yield { items: namespaces.map(zoneOf), resourceVersion: "9" };
      return;
    }
    looks.set(namespace, (looks.get(namespace) ?? 0) + 1);
    await clock.sleep(listMs);
    yield { items: [], resourceVersion: "9" };
  };
  const cluster = { list } as unknown as Cluster;
  const annotations = new Map<string, string>();
  const startedAt = clock.now();
  const serve = async (): Promise<void> => {
    while (clock.now() < startedAt + minutes * 60_000) await serveRun();
  };
  async function serveRun(): Promise<void> {
    const stop = new AbortController();
    const over = clock.sleep(RUN_MS).then(() => stop.abort());
    const steps = createSteps({ clock, onLate: () => {} });
    const memory = createGroupTurns(clock, annotations);
    const resync = createResync(annotations);
    while (!stop.signal.aborted) {
      const tickAt = clock.now();
      const result = await tick({
        context: {
          cluster,
          fence: { write: () => ({}) },
          clock,
          stop: stop.signal,
        },
        namespaces: [""],
        turns: {
          isResyncDue: (key) => resync.isDue(key, tickAt),
          onResync: (key) => resync.begin(key, tickAt),
          memory,
        },
        steps,
        scaling: { ...scalingOf(cluster), notifier: {} as TickInput["scaling"]["notifier"] },
        budgets: { mayDisrupt: async () => undefined, maintenance: noMaintenance },
        checking: noChecks,
        phased: noPhases,
        report: { emitEvents: () => {}, timesSuperseded: () => 0, onOutcome: () => {} },
      });
      resync.endTick([...result.groups.keys()], tickAt);
      if (result.skipped === 0) await clock.sleep(5000, stop.signal);
    }
    await steps.idle();
    await over;
  }
  let isOver = false;
  const serving = serve().finally(() => (isOver = true));
  while (!isOver) await time.advance(50);
  await serving;
  return { looks, startedAt, annotations };
}

describe("120 namespaces whose groups take 700 ms each", () => {
  it("are all reconciled equally often, and are all resynced", async () => {
    const namespaces = Array.from({ length: 120 }, (_, i) => `ns-${String(i).padStart(3, "0")}`);
    const { looks, startedAt, annotations } = await play(namespaces, { listMs: 700, minutes: 3 });
    const counts = [...looks.values()];
    assert.ok(Math.min(...counts) > 0 && Math.max(...counts) - Math.min(...counts) <= 1, counts.join(" "));
    assert.ok((resyncedThrough(annotations) ?? 0) >= startedAt);
  });
});
