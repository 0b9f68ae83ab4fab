import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import type { Lease } from "../../../infra/kubernetes/resources.ts";
import { assertNoViolations, deletions } from "../stage/invariants.ts";
import { createRandom, SEED } from "../stage/random.ts";
import { scenario, type Stage } from "../stage/stage.ts";
import { until } from "../stage/until.ts";

/** Milliseconds of work before each freeze and thaw; the same in every run with the same SEED. */
const workMs = (turn: number): number => createRandom(`turn-${turn}`).between(0, 300);

/** Resolves once the reconciler with this POD_NAME has the Lease, be it from now on or since a moment ago. */
const untilHeldBy = async ({ call, namespace }: Stage, name: string): Promise<void> =>
  await until(`${name} holds the Lease`, async () => {
    const path = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases/zonewise-reconciler`;
    const { spec } = await call<Lease>("GET", path);
    return spec?.holderIdentity?.startsWith(`${name}_`) === true;
  });

scenario(
  "a reconciler that is frozen until its Lease expires, and continued while another works, violates no invariant",
  async (stage) => {
    const { create, start, setImage, done, timeline, diagnostic } = stage;
    diagnostic(`SEED=${SEED}`);
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
      await sleep(workMs(turn));
      working.process.freeze();
      // Only now: to one that waits the first would hand over, and end.
      other ??= { name: "two", process: start({ ...env, POD_NAME: "two" }) };
      await untilHeldBy(stage, other.name);
      await sleep(workMs(turn));
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
