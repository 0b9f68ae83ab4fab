/** What is not seen of the drill's pods is a gap of the history. */
import assert from "node:assert/strict";
import { it, type TestContext } from "node:test";
import { followPods } from "./follow-pods.ts";
import { createHistory } from "./history.ts";
import { marks, type Run } from "./plan.ts";
import { type Clock, systemClock } from "../../infra/clock.ts";
import { connectCluster } from "../../infra/kubernetes/connect-cluster.ts";
import { startEmulator } from "../emulator/index.ts";
import { pod } from "../builders/objects.ts";

/** A watch that breaks is opened again after a second, here after some milliseconds. */
const clock: Clock = { ...systemClock, sleep: (ms, signal) => systemClock.sleep(ms / 50, signal) };

const RUN: Run = {
  name: "zonewise-drill-b1c2d",
  namespace: "default",
  image: "a",
  isOwnImage: false,
  nodeSelector: {},
};
const buildPod = (name: string) => pod(name, { labels: marks(RUN.name, 0).labels });

/** Follows the pods until `play` is over; resolves with the gaps. */
async function countGaps(
  t: TestContext,
  play: (
    emulator: Awaited<ReturnType<typeof startEmulator>>,
    sees: (count: number) => Promise<unknown>,
  ) => Promise<void>,
): Promise<number> {
  const emulator = await startEmulator({ controllers: false });
  t.after(() => emulator.stop());
  const cluster = connectCluster(emulator.connection(), { timeoutMs: 60_000, clock });
  const history = createHistory(clock.monotonic);
  const stop = new AbortController();
  const following = followPods({ cluster, clock, history, run: RUN, random: Math.random, signal: stop.signal });
  await history.until(() => history.entries.length > 0, AbortSignal.timeout(180_000));
  emulator.store.create("pods", buildPod("zone-a-0"));
  const sees = async (count: number): Promise<void> =>
    assert.ok(await history.until(() => history.pods.size === count, AbortSignal.timeout(180_000)));
  await sees(1);
  await play(emulator, sees);
  stop.abort();
  await following;
  return history.entries.filter((entry) => entry.what === "pods" && entry.gap).length;
}

const untilStruck = async ({ faults }: Awaited<ReturnType<typeof startEmulator>>): Promise<void> => {
  while (faults.struck() === 0) await clock.sleep(10);
};

it("a watch that lasts leaves no gap", async (t) => assert.equal(await countGaps(t, async () => {}), 0));

it("a watch that broke for good leaves one", async (t) => {
  const gaps = await countGaps(t, async (emulator) => {
    emulator.faults.inject({ verb: "watch", effect: { kind: "forbidden" } });
    emulator.faults.cutWatches("pods");
    await untilStruck(emulator);
  });
  assert.equal(gaps, 1);
});

it("a watch that broke, and has shown what came after, leaves none", async (t) => {
  const gaps = await countGaps(t, async (emulator, sees) => {
    emulator.faults.inject({ verb: "watch", times: 1, effect: { kind: "forbidden" } });
    emulator.faults.cutWatches("pods");
    await untilStruck(emulator);
    emulator.store.create("pods", buildPod("zone-a-1"));
    await sees(2);
  });
  assert.equal(gaps, 0);
});
