/**
 * A webhook process that dies between two calls of a downscale, and a reconciler that dies while it concludes that
 * downscale.
 */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { either } from "../runs.ts";
import { A, MODES, type Scene, set } from "./downscale-scene.ts";

/** Calls between two deaths; at a half, a call is made and its answer lost. A step of 4.5 meets both in turn. */
const STEP = either(0.5, 4.5);
const SHARE = 0.5 / STEP;

/**
 * Checks the end state: none of the 3 pods stays prepared unless it was removed, B waits for A only if A was scaled
 * down, and 30 s later no downscale of A is pending.
 */
async function checkEnd(scene: Scene, isStored: boolean, when: string): Promise<void> {
  assert.deepEqual(scene.prepared(), isStored ? [`${A}-1`, `${A}-2`] : [], when);
  assert.equal(scene.written() !== undefined, isStored, when);
  const answer = await scene.shrinkB();
  if (!isStored) assert.equal(scene.tracked()[A], undefined, when);
  if (isStored) assert.match(answer.message ?? "", WAITS, when);
  else assert.equal(answer.allowed, true, `${when}: ${answer.message}`);
  scene.pass(30_000);
  await scene.conclude();
  assert.equal(scene.pending()[A], undefined, when);
}

const WAITS = /ingester-zone-a was downscaled at .* is labelled to wait 12h0m0s/;

const ENDS = [false, true].flatMap((isStored) => MODES.map(([mode, isTracked]) => ({ isStored, mode, isTracked })));

describe("a downscale whose process dies", () => {
  for (const { isStored, mode, isTracked } of ENDS)
    it(`in ${mode} at any call, and ${isStored ? "is" : "is not"} stored if it was admitted: the reconciler leaves no pod prepared, and no wait without a downscale`, async () => {
      const seen = { admitted: 0, prepared: 0, steps: 0 };
      for (let diesAt = 0, calls = Infinity; diesAt <= calls + 0.5; diesAt += STEP) {
        const scene = set({ isTracked });
        const { isAdmitted, made } = await scene.shrink(diesAt);
        if (made < diesAt) calls = made;
        seen.steps++;
        if (isAdmitted) seen.admitted++;
        if (scene.prepared().length > 0) seen.prepared++;
        if (isAdmitted && isStored) scene.store(1);
        scene.pass(91_000);
        await scene.conclude();
        await checkEnd(scene, isAdmitted && isStored, `died at call ${diesAt}`);
      }
      assert.ok(seen.admitted > 0 && seen.prepared > 3 * SHARE && seen.steps > 15 * SHARE, JSON.stringify(seen));
    });

  for (const { isStored, mode, isTracked } of ENDS)
    it(`in ${mode}, and a reconciler that dies at any call of its own: ${isStored ? "stored" : "never stored"}`, async () => {
      let steps = 0;
      for (let diesAt = 0, calls = Infinity; diesAt <= calls + 0.5; diesAt += STEP) {
        const scene = set({ isTracked });
        assert.equal((await scene.shrink()).isAdmitted, true);
        if (isStored) scene.store(1);
        scene.pass(91_000);
        const made = await scene.conclude(diesAt);
        if (made < diesAt) calls = made;
        steps++;
        // The Lease that it held at its death.
        scene.pass(16_000);
        await scene.conclude();
        await checkEnd(scene, isStored, `died at call ${diesAt}`);
      }
      assert.ok(steps > 10 * SHARE, String(steps));
    });
});

describe("a downscale that was admitted", () => {
  it("is not concluded while it may still be stored, and holds the other zone until then", async () => {
    const scene = set();
    assert.equal((await scene.shrink()).isAdmitted, true);
    scene.pass(80_000);
    await scene.conclude();
    assert.deepEqual(scene.prepared(), [`${A}-1`, `${A}-2`]);
    const early = await scene.shrinkB();
    assert.match(early.message ?? "", /ingester-zone-a was downscaled at/);
  });

  it("and is admitted again, as the API server retries after a conflict, is one downscale", async () => {
    const scene = set();
    for (const uid of ["first", "first", "second"]) assert.equal((await scene.shrink(Infinity, uid)).isAdmitted, true);
    assert.deepEqual(Object.keys(scene.pending()), [A]);
    scene.store(1);
    await scene.conclude();
    await checkEnd(scene, true, "requested three times");
  });

  it("keeps its pods prepared when another request for them fails, as it may still be stored", async () => {
    let isFailing = false;
    const scene = set({ script: (method) => (isFailing && method === "POST" ? 500 : 200) });
    assert.equal((await scene.shrink()).isAdmitted, true);
    isFailing = true;
    assert.equal((await scene.shrink(Infinity, "other")).isAdmitted, false);
    assert.deepEqual(scene.prepared(), [`${A}-1`, `${A}-2`]);
    scene.pass(91_000);
    await scene.conclude();
    isFailing = false;
    await checkEnd(scene, false, "never stored");
  });
});

describe("a time in the zone tracker", () => {
  it("is unchanged after any number of downscales that never happened", async () => {
    const scene = set({ isTracked: true });
    const long = new Date(scene.clock.now() - 100 * 3_600_000).toISOString();
    scene.track({ [A]: JSON.stringify({ lastDownscaled: long }), other: "kept" });
    for (const uid of ["first", "second", "third"]) {
      assert.equal((await scene.shrink(Infinity, uid)).isAdmitted, true);
      scene.pass(20_000);
    }
    assert.match(scene.tracked()[A] ?? "", new RegExp(`"before":"${long}"`));
    scene.pass(91_000);
    await scene.conclude();
    assert.deepEqual(scene.tracked(), { [A]: JSON.stringify({ lastDownscaled: long }), other: "kept" });
  });
});

describe("a downscale that was stored, after which the zone grew again before it was concluded", () => {
  for (const [mode, isTracked] of MODES)
    for (const isConcluded of [false, true])
      it(`in ${mode}, ${isConcluded ? "concluded by the reconciler" : "seen only by the webhook"}: the other zone waits its time`, async () => {
        const scene = set({ isTracked });
        assert.equal((await scene.shrink()).isAdmitted, true);
        scene.store(1);
        scene.store(3);
        const { [A]: time } = scene.tracked();
        if (isConcluded) {
          await scene.conclude();
          const written = scene.written();
          assert.ok(written);
          assert.deepEqual([scene.pending(), scene.prepared(), scene.tracked()[A]], [{}, [], time]);
        }
        const answer = await scene.shrinkB(2);
        assert.match(answer.message ?? "", WAITS);
      });
});

describe("a downscale that another webhook made smaller as it was stored", () => {
  for (const [mode, isTracked] of MODES)
    it(`in ${mode} has happened: its time stays, the pod that stays is told so, and the other zone waits`, async () => {
      const scene = set({ isTracked });
      assert.equal((await scene.shrink()).isAdmitted, true);
      const { [A]: time } = scene.tracked();
      scene.store(2);
      scene.pass(91_000);
      await scene.conclude();
      assert.deepEqual([scene.prepared(), scene.tracked()[A]], [[`${A}-2`], time]);
      const written = scene.written();
      assert.ok(written);
      const answer = await scene.shrinkB(2);
      assert.match(answer.message ?? "", WAITS);
    });
});

describe("a downscale that failed after the zone had grown again", () => {
  it("is undone at once: the earlier admission can no longer be stored", async () => {
    let isFailing = false;
    const scene = set({ script: (method) => (isFailing && method === "POST" ? 500 : 200) });
    assert.equal((await scene.shrink()).isAdmitted, true);
    scene.store(1);
    scene.store(3);
    isFailing = true;
    assert.equal((await scene.shrink(Infinity, "other")).isAdmitted, false);
    assert.deepEqual(scene.prepared(), []);
  });
});

describe("pods whose preparation cannot be cancelled", () => {
  it("are called again until all have answered, which an Event and a log line report; the webhook's own undo is not enough", async () => {
    let isDown = true;
    const scene = set({
      script: (method, pod) => {
        if (method === "POST") return pod.endsWith("-1") ? 500 : 200;
        return isDown ? 503 : 200;
      },
    });
    assert.equal((await scene.shrink()).isAdmitted, false);
    const other = await scene.shrinkB(3);
    assert.equal(other.allowed, true);
    assert.equal(scene.pending()[A]?.refused, true);
    await scene.conclude();
    assert.equal(scene.pending()[A]?.refused, true);
    isDown = false;
    scene.pass(30_000);
    await scene.conclude();
    assert.deepEqual([scene.pending(), scene.prepared()], [{}, []]);
  });
});
