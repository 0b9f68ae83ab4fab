/**
 * Jobs, healers and a careless editor on one Secret: random orders of their calls, every order with at most two changes
 * of turn, and kills. The cluster is the embedded one's store behind the port, without a network, so that the scheduler
 * alone decides who is next.
 */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { either } from "../../../runs.ts";
import * as on from "../stage.ts";
import { checkEnd, clearBundle, createWorld, type Gate, puppet, startHealer, startJob, type Day } from "../world.ts";

const atOnce: Gate = (_what, run) => run();

async function callsOf(day: Day): Promise<string[]> {
  const calls: string[] = [];
  await startJob(createWorld(day), (what, run) => {
    calls.push(what);
    return run();
  });
  return calls;
}

describe("certificate jobs in each other's way", () => {
  for (const day of [0, 240] as const) {
    it(`day ${day}: two jobs, two healers and an editor in random order leave one pair, trusted by all, and never less trust`, async () => {
      await fc.assert(
        fc.asyncProperty(fc.scheduler(), async (scheduler) => {
          const world = createWorld(day);
          const gate: Gate = (_what, run) => scheduler.schedule(Promise.resolve()).then(run);
          const jobs = [startJob(world, gate), startJob(world, gate)];
          const others = [
            startHealer(world, gate),
            startHealer(world, gate),
            gate("edit", async () => clearBundle(world)),
          ];
          await scheduler.waitFor(Promise.all([...jobs, ...others]));
          assert.deepEqual(await Promise.all(jobs), [0, 0]);
          // The editor may have been last.
          await startHealer(world, atOnce);
          checkEnd(world);
        }),
        { numRuns: either(100, 10) },
      );
    });

    it(`day ${day}: one job stands still after any call while another runs to any call or to its end`, async () => {
      const many = (await callsOf(day)).length;
      for (let k = 0; k <= many; k++) {
        for (let m = 0; m <= many; m += 1 + Math.floor(many / either(12, 4))) {
          const world = createWorld(day);
          const [one, other] = [puppet((gate) => startJob(world, gate)), puppet((gate) => startJob(world, gate))];
          for (let i = 0; i < k; i++) await one.step();
          for (let i = 0; i < m; i++) await other.step();
          assert.equal(await one.finish(), 0);
          assert.equal(await other.finish(), 0);
          checkEnd(world);
        }
      }
    });

    it(`day ${day}: a healer stands still after any call, before a cleared bundle, while a job does all its work`, async () => {
      for (let k = 0; k <= 5; k++) {
        const world = createWorld(day);
        clearBundle(world);
        const healer = puppet((gate) => startHealer(world, gate));
        for (let i = 0; i < k; i++) await healer.step();
        assert.equal(await startJob(world, atOnce), 0);
        await healer.finish();
        checkEnd(world);
      }
    });

    it(`day ${day}: a job killed at any call, before or after it took effect, is finished by the next`, async () => {
      const calls = await callsOf(day);
      assert.ok(calls.filter((what) => ["create", "replace", "patch"].includes(what)).length >= 3);
      for (let at = 0; at < 2 * calls.length; at++) {
        const world = createWorld(day);
        let count = 0;
        await new Promise<void>((dead) => {
          void startJob(world, async (_what, run) => {
            if (count++ !== Math.floor(at / 2)) return run();
            if (at % 2 === 1) await run().catch(() => {});
            dead();
            return new Promise(() => {});
          });
        });
        assert.equal(await startJob(world, atOnce), 0);
        checkEnd(world);
      }
    });
  }

  it("a bundle removed while the new CA settles restarts the wait", async () => {
    const world = createWorld(240);
    let waits = 0;
    const injected: number[] = [];
    let switched = 0;
    world.store.subscribe(({ resource, object }) => {
      const { cert } = on.textsOf(object as never);
      if (resource !== "secrets") injected.push(world.clock.now());
      else if (cert !== on.textsOf(world.store.eventsSince(0)[0]?.object as never)["cert"])
        switched = world.clock.now();
    });
    const gate: Gate = async (what, run) => {
      const result = await run();
      if (what === "sleep" && waits++ === 0) clearBundle(world);
      return result;
    };
    assert.equal(await startJob(world, gate), 0);
    assert.equal(waits, 2);
    assert.ok(switched - Math.max(...injected) >= 30_000);
    checkEnd(world);
  });
});
