import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import type { Cluster } from "../../../infra/kubernetes/cluster.ts";
import type { Effect, Fault } from "../../emulator/faults.ts";
import { either } from "../../runs.ts";
import { deploy, setStage, tickOnce, type Stage } from "../stage.ts";
import { revisions, witness } from "../witness.ts";

const TROUBLES: readonly Effect[] = [
  { kind: "conflict" },
  { kind: "dropAfter" },
  { kind: "dropBefore" },
  { kind: "error" },
  { kind: "tooMany", retryAfterSeconds: 0 },
];

/** Healthy zones with a new image. */
async function beginRollout(
  t: TestContext,
): Promise<{ stage: Stage; cluster: Cluster; seen: ReturnType<typeof witness> }> {
  const stage = await setStage();
  t.after(() => stage.close());
  deploy(stage, "x:1");
  await stage.time.advance(2000);
  deploy(stage, "x:2");
  await stage.time.advance(100);
  return { stage, cluster: stage.connect().cluster, seen: witness(stage) };
}

describe("under errors of the API server", () => {
  const seeds = either([1, 2, 3, 4, 5, 6], [1, 2, 3]);
  for (const [seed, atOnce] of seeds.flatMap((seed) => [[seed, 1] as const, [seed, 3] as const])) {
    it(`no two zones are disrupted, and the rollout ends (seed ${seed}, ${atOnce} pods at once: lost answers, conflicts, errors, two reconcilers without knowledge of each other)`, async () => {
      const stage = await setStage(seed);
      try {
        deploy(stage, "x:1", { annotations: { "rollout-max-unavailable": String(atOnce) } });
        await stage.time.advance(2000);
        const seen = witness(stage, atOnce);
        deploy(stage, "x:2");
        for (const effect of TROUBLES) stage.emulator.faults.inject({ effect, probability: 0.06 } satisfies Fault);
        const [one, two] = [stage.connect().cluster, stage.connect().cluster];
        for (let i = 0; i < 400 && seen.deleted.length < 9; i++) {
          await stage.time.advance((i * 37) % 150);
          // Each tick starts with nothing in memory, as after a kill.
          await Promise.allSettled([tickOnce(stage, one), tickOnce(stage, two)]);
        }
        stage.emulator.faults.clear();
        for (let i = 0; i < 30; i++) {
          await stage.time.advance(100);
          await tickOnce(stage, one);
        }
        assert.deepEqual(seen.violations, []);
        assert.deepEqual(
          revisions(stage),
          [0, 1, 2].map(() => [true, 3, 3]),
        );
      } finally {
        await stage.close();
      }
    });
  }

  it("what one step throws fails that step alone, and is told", async (t) => {
    const { stage, cluster } = await beginRollout(t);
    deploy(stage, "x:1", { group: "store" });
    await stage.time.advance(2000);
    const told: string[] = [];
    const onOutcome = ({ group }: { readonly group: string }): void => {
      if (group === "ingester") throw new Error("no report should");
    };
    const onError = (_: unknown, key: string): void => void told.push(key);
    const result = await tickOnce(stage, cluster, { onOutcome, onError });
    assert.deepEqual(
      result.outcomes.map(({ group }) => group),
      ["store"],
    );
    assert.deepEqual([told, result.phasedFailed], [["default/ingester"], true]);
  });

  it("a zone deleted and recreated between decision and action is not touched, and is no failure", async (t) => {
    const { stage, cluster, seen } = await beginRollout(t);
    const remake = (): void => {
      const { store } = stage.emulator;
      const set = store.get("statefulsets.apps", "default", "ingester-zone-a");
      assert.ok(set);
      store.remove("statefulsets.apps", "default", "ingester-zone-a");
      const { name, namespace = "default", labels = {} } = set.metadata;
      store.create("statefulsets.apps", { ...set, metadata: { name, namespace, labels } });
    };
    const recreating: Cluster = {
      ...cluster,
      patch: (...call) => {
        remake();
        return cluster.patch(...call);
      },
    };
    const { outcomes } = await tickOnce(stage, recreating);
    assert.deepEqual(
      outcomes.map((outcome) => outcome.state),
      ["superseded"],
    );
    assert.deepEqual(seen.deleted, []);
  });
});
