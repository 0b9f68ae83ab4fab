/** A list that is older than what the process has seen, by reading or by writing, is never acted on. */
import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import type { RolloutError } from "../../../infra/errors.ts";
import { createFreshness } from "../../../infra/kubernetes/freshness.ts";
import type { Outcome } from "../../../reconciler/model/outcome.ts";
import { deploy, setStage, tickOnce, type Stage } from "../stage.ts";

/** Ticks of one process over a group with a new image. */
async function begin(t: TestContext): Promise<{ stage: Stage; tick: () => Promise<Outcome | undefined> }> {
  const stage = await setStage();
  t.after(() => stage.close());
  deploy(stage, "x:1");
  await stage.time.advance(2000);
  deploy(stage, "x:2");
  await stage.time.advance(500);
  const { cluster } = stage.connect();
  const freshness = createFreshness(stage.clock, { warn: () => {} });
  return { stage, tick: async () => (await tickOnce(stage, cluster, { freshness })).outcomes[0] };
}

/** Lists of this resource return the state before the last write to it. */
function beforeLastWrite(stage: Stage, resource: string): void {
  const versions = stage.emulator.store
    .list(resource, "default")
    .map(({ metadata }) => Number(metadata.resourceVersion));
  stage.emulator.faults.inject({
    effect: { kind: "stale", resourceVersion: Math.max(...versions) - 1 },
    resource,
    verb: "list",
  });
}

const codeOf = (outcome: Outcome | undefined): string | undefined =>
  outcome?.state === "superseded" ? outcome.error.code : outcome?.state;

describe("a list of pods", () => {
  it("from before its own deletion is refused", async (t) => {
    const { stage, tick } = await begin(t);
    assert.equal((await tick())?.state, "acted");
    beforeLastWrite(stage, "pods");
    assert.equal(codeOf(await tick()), "StaleRead");
  });

  it("from before the last one is refused", async (t) => {
    const { stage, tick } = await begin(t);
    await tick();
    await stage.time.advance(200);
    assert.equal((await tick())?.state, "held");
    beforeLastWrite(stage, "pods");
    await stage.time.advance(100_000);
    assert.equal(codeOf(await tick()), "StaleRead");
  });
});

describe("a list of StatefulSets", () => {
  it("from before its own status patch is refused", async (t) => {
    const { stage, tick } = await begin(t);
    for (let i = 0; ; i++) {
      assert.ok(i < 100, "the first zone is finished");
      const outcome = await tick();
      if (outcome?.state === "acted" && outcome.decision.action === "finishZone") break;
      await stage.time.advance(100);
    }
    beforeLastWrite(stage, "statefulsets.apps");
    await assert.rejects(tick(), (error: RolloutError) => error.code === "StaleRead");
  });
});
