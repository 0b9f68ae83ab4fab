/** A phased rollout whose reconciler is killed. */
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { createRandom, SEED } from "../stage/random.ts";
import { FAST, phasedScenario } from "./phased-stage.ts";
import { adopt, deletedPods, untilRolled } from "./roll.ts";

/** A killed one frees its Lease at once, nearly. */
const SHORT = { ...FAST, LEASE_DURATION: "1s" };
const KILLS = 20;

phasedScenario(
  "a reconciler killed twenty times at random moments releases each pod once, after its checks",
  async (stage) => {
    stage.diagnostic(`SEED=${SEED}`);
    await stage.createSet({ replicas: 5, policy: "Parallel" });
    const first = await adopt(stage);
    await first.kill();
    const before = (await stage.readRollout()).status?.updateRevision;
    await stage.roll("app:2");
    const random = createRandom("phased");
    for (let kill = 0; kill < KILLS; kill++) {
      const reconciler = stage.start(SHORT);
      await reconciler.untilOutput(/holding the lease/);
      await sleep(random.between(0, 500));
      await reconciler.kill();
    }
    stage.start(FAST);
    await untilRolled(stage, "app:2", 5);
    assert.deepEqual(deletedPods(stage), ["db-4", "db-3", "db-2", "db-1", "db-0"]);
    assert.ok(stage.prometheus.asked >= 10, `${stage.prometheus.asked} checks`);
    assert.notEqual((await stage.readRollout()).status?.updateRevision, before);
  },
);
