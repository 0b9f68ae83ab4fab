import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import type { Lease } from "../../../infra/kubernetes/resources.ts";
import { assertNoViolations, deletions } from "../stage/invariants.ts";
import { createRandom, SEED } from "../stage/random.ts";
import { scenario, type Stage } from "../stage/stage.ts";
import { until } from "../stage/until.ts";

const KILLS = 10;

/**
 * Ten kills are enough once a pod was deleted; on a machine that is so slow that no process got that far, more follow.
 */
const MAX_KILLS = 60;

/**
 * Milliseconds from a start to the kill; the same in every run with the same SEED. Where ten were too early, each
 * further one comes later.
 */
const killDelay = (kill: number): number =>
  createRandom(`kill-${kill}`).between(0, 300) * Math.max(1, kill - KILLS + 1);

/** Resolves once the reconciler with this POD_NAME has the Lease, be it from now on or since a moment ago. */
const untilHeldBy = async ({ call, namespace }: Stage, name: string): Promise<void> =>
  await until(`${name} holds the Lease`, async () => {
    const path = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases/zonewise-reconciler`;
    const { spec } = await call<Lease>("GET", path);
    return spec?.holderIdentity?.startsWith(`${name}_`) === true;
  });

scenario(
  "a reconciler killed ten times at random moments of a rollout completes it and deletes no pod twice",
  async (stage) => {
    const { create, start, setImage, done, timeline, diagnostic } = stage;
    diagnostic(`SEED=${SEED}`);
    // A pod takes far longer to become ready than each of the processes lives, so the rollout outlasts them.
    const sim = { "sim/ready-after-ms": "2000" };
    const zones = ["zone-a", "zone-b", "zone-c"].map((name) => ({ group: "cache", name, replicas: 4, sim }));
    const env = { LEASE_DURATION: "1s" };
    await create(zones);
    await setImage("app:2", zones);
    const deleted = () => deletions(timeline.entries).map(({ pod }) => pod);
    for (let kill = 0; kill < KILLS || (deleted().length === 0 && kill < MAX_KILLS); kill++) {
      const reconciler = start(env);
      await reconciler.untilOutput(/holding the lease/);
      await sleep(killDelay(kill));
      await reconciler.kill();
    }
    const before = deleted().length;
    assert.ok(
      before > 0 && before < 12,
      `${before} of 12 pods were deleted before the last kill: all kills must happen during the rollout`,
    );
    const last = start();
    await done("app:2", zones);
    assert.equal(await last.end(), 0);

    assertNoViolations(timeline.entries);
    assert.equal(deleted().length, 12);
    assert.equal(new Set(deleted()).size, 12);
  },
);

scenario(
  "a reconciler that is frozen until its Lease expires, and continued while another works, violates no invariant",
  async (stage) => {
    const { create, start, setImage, done, timeline } = stage;
    const zones = ["zone-a", "zone-b", "zone-c"].map((name) => ({ group: "cache", name }));
    const env = { LEASE_DURATION: "3s" };
    await create(zones);
    await setImage("app:2", zones);
    const one = start({ ...env, POD_NAME: "one" });
    await one.untilOutput(/holding the lease/);
    let working = { name: "one", process: one };
    let other: typeof working | undefined;
    // Each in turn is frozen in the middle of its work, and continues after the other has advanced the rollout.
    for (let turn = 0; turn < 4; turn++) {
      await sleep(killDelay(turn));
      working.process.freeze();
      // Only now: to one that waits the first would hand over, and end.
      other ??= { name: "two", process: start({ ...env, POD_NAME: "two" }) };
      await untilHeldBy(stage, other.name);
      await sleep(killDelay(turn));
      working.process.thaw();
      [working, other] = [other, working];
    }
    await done("app:2", zones);
    // The last tick of one that was frozen, or that the machine held up, may have failed without the Lease.
    const codes = [await working.process.end(), await other?.process.end()];
    assert.ok(codes.includes(0) && codes.every((code) => code === 0 || code === 1), codes.join());
    assertNoViolations(timeline.entries);
    assert.equal(deletions(timeline.entries).length, 9);
  },
);
