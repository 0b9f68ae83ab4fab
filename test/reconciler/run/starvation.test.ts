/** Ticks of runs that are cut after 55 s reach every group, and slow groups of one namespace keep no other waiting. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Cluster } from "../../../infra/kubernetes/cluster.ts";
import { createSteps } from "../../../reconciler/run/tick.ts";
import { manualClock } from "../../emulator/clock.ts";
import { clockOf, tickOnce } from "../stage.ts";

const RUN_MS = 55_000;

/** A group, and how long a list of its pods takes. */
interface Group {
  readonly namespace: string;
  readonly name: string;
  readonly listMs: number;
}

/** Its zone of three pods, one of which is not ready, so that each step lists its pods. */
const zoneOf = ({ namespace, name }: Group) => ({
  metadata: {
    name: `${name}-zone-a`,
    namespace,
    uid: `${namespace}/${name}`,
    generation: 1,
    resourceVersion: "5",
    labels: { "rollout-group": name },
    annotations: {},
  },
  spec: {
    replicas: 3,
    serviceName: name,
    updateStrategy: { type: "OnDelete" },
    selector: { matchLabels: { name: `${namespace}-${name}` } },
    template: { metadata: { labels: { name: `${namespace}-${name}` } }, spec: { containers: [] } },
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

/** Plays runs of 55 s for so many minutes; resolves with how often each group was looked at. */
async function play(groups: readonly Group[], minutes: number): Promise<Map<Group, number>> {
  const time = manualClock();
  const clock = clockOf(time);
  const looks = new Map(groups.map((group) => [group, 0]));
  const list = async function* (
    { plural }: { plural: string },
    { labelSelector = "" }: { labelSelector?: string },
  ): AsyncGenerator {
    if (plural === "statefulsets") {
      yield { items: groups.map(zoneOf), resourceVersion: "9" };
      return;
    }
    const group = groups.find(({ namespace, name }) => labelSelector === `name=${namespace}-${name}`);
    if (!group) throw new Error(labelSelector);
    looks.set(group, (looks.get(group) ?? 0) + 1);
    await clock.sleep(group.listMs);
    yield { items: [], resourceVersion: "9" };
  };
  const cluster = { list } as unknown as Cluster;
  const startedAt = clock.now();
  const serve = async (): Promise<void> => {
    while (clock.now() < startedAt + minutes * 60_000) await serveRun();
  };
  async function serveRun(): Promise<void> {
    const stop = new AbortController();
    const over = clock.sleep(RUN_MS).then(() => stop.abort());
    const steps = createSteps({ clock, stop: stop.signal }, { onOwed: () => {}, isPatient: false });
    while (!stop.signal.aborted) {
      steps.queue.pause();
      await tickOnce({ clock }, cluster, { namespaces: [""], steps, stop: stop.signal });
      await clock.sleep(5000, stop.signal);
    }
    await steps.queue.idle();
    await over;
  }
  let isOver = false;
  const serving = serve().finally(() => (isOver = true));
  while (!isOver) await time.advance(50);
  await serving;
  return looks;
}

describe("120 namespaces whose groups take 700 ms each", () => {
  it("are all reconciled equally often", async () => {
    const groups = Array.from({ length: 120 }, (_, i) => ({ namespace: `ns-${i}`, name: "g", listMs: 700 }));
    const counts = [...(await play(groups, 3)).values()];
    assert.ok(Math.min(...counts) >= 24 && Math.max(...counts) - Math.min(...counts) <= 3, counts.join(" "));
  });
});

describe("100 groups of a namespace that take 15 s each", () => {
  it("are reconciled in turn, and leave another namespace's group its look in each tick", async () => {
    const slow = Array.from({ length: 100 }, (_, i) => ({ namespace: "slow", name: `g-${i}`, listMs: 15_000 }));
    const other = { namespace: "other", name: "g", listMs: 10 };
    const looks = await play([...slow, other], 5);
    assert.ok((looks.get(other) ?? 0) >= 45, `${looks.get(other)} looks`);
    const counts = slow.map((group) => looks.get(group) ?? 0);
    assert.ok(Math.max(...counts) <= 4 && counts.filter((count) => count > 0).length >= 85, counts.join(" "));
  });
});
