/**
 * A webhook process that dies between two calls of a downscale, and a reconciler that dies while it concludes that
 * downscale.
 */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { either } from "../runs.ts";
import { type Scene, set, shrink, store } from "./downscale-scene.ts";
import { A, inTracker, LAST, leftPrepared, MODES, pendingOf, tracked, TRACKER } from "./prepare-stage.ts";
import { reviewOf } from "./stage.ts";

/** Calls between two deaths; at a half, a call is made and its answer lost. A step of 4.5 meets both in turn. */
const STEP = either(0.5, 4.5);
const SHARE = 0.5 / STEP;

/**
 * Checks the end state: none of the 3 pods stays prepared unless it was removed, B waits for A only if A was scaled
 * down, and 30 s later no downscale of A is pending.
 */
async function checkEnd(scene: Scene, isStored: boolean, when: string): Promise<void> {
  const prepared = [...leftPrepared(scene.seen)].toSorted();
  assert.deepEqual(prepared, isStored ? [`${A}-1`, `${A}-2`] : [], when);
  const written = scene.emulator.store.get("statefulsets.apps", "default", A)?.metadata.annotations?.[LAST];
  assert.equal(written !== undefined, isStored, when);
  const answer = await scene.call(scene.process().webhook, reviewOf(scene.zones[1], 1, { uid: "end" }));
  if (!isStored) assert.equal(tracked(scene)[A], undefined, when);
  if (isStored)
    assert.match(answer.message ?? "", /ingester-zone-a was downscaled at .* is labelled to wait 12h0m0s/, when);
  else assert.equal(answer.allowed, true, `${when}: ${answer.message}`);
  scene.pass(30_000);
  await scene.conclude();
  assert.equal(pendingOf(scene)[A], undefined, when);
}

describe("a downscale whose process dies", () => {
  for (const [isStored, [mode, recordOf]] of [false, true].flatMap((one) => MODES.map((two) => [one, two] as const)))
    it(`in ${mode} at any call, and ${isStored ? "is" : "is not"} stored if it was admitted: the reconciler leaves no pod prepared, and no wait without a downscale`, async (t) => {
      const seen = { admitted: 0, prepared: 0, steps: 0 };
      for (let diesAt = 0, calls = Infinity; diesAt <= calls + 0.5; diesAt += STEP) {
        const scene = await set(t, undefined, recordOf);
        const { isAdmitted, made } = await shrink(scene, diesAt);
        if (made < diesAt) calls = made;
        seen.steps++;
        if (isAdmitted) seen.admitted++;
        if (leftPrepared(scene.seen).size > 0) seen.prepared++;
        if (isAdmitted && isStored) store(scene, A, 1);
        scene.pass(91_000);
        await scene.conclude();
        await checkEnd(scene, isAdmitted && isStored, `died at call ${diesAt}`);
      }
      assert.ok(seen.admitted > 0 && seen.prepared > 3 * SHARE && seen.steps > 15 * SHARE, JSON.stringify(seen));
    });

  for (const [isStored, [mode, recordOf]] of [false, true].flatMap((one) => MODES.map((two) => [one, two] as const)))
    it(`in ${mode}, and a reconciler that dies at any call of its own: ${isStored ? "stored" : "never stored"}`, async (t) => {
      let steps = 0;
      for (let diesAt = 0, calls = Infinity; diesAt <= calls + 0.5; diesAt += STEP) {
        const scene = await set(t, undefined, recordOf);
        assert.equal((await shrink(scene, Infinity)).isAdmitted, true);
        if (isStored) store(scene, A, 1);
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
  it("is not concluded while it may still be stored, and holds the other zone until then", async (t) => {
    const scene = await set(t);
    assert.equal((await shrink(scene, Infinity)).isAdmitted, true);
    scene.pass(80_000);
    await scene.conclude();
    assert.deepEqual([...leftPrepared(scene.seen)].toSorted(), [`${A}-1`, `${A}-2`]);
    const early = await scene.call(scene.process().webhook, reviewOf(scene.zones[1], 1));
    assert.match(early.message ?? "", /ingester-zone-a was downscaled at/);
  });

  it("and is admitted again, as the API server retries after a conflict, is one downscale", async (t) => {
    const scene = await set(t);
    for (const uid of ["first", "first", "second"]) assert.equal((await shrink(scene, Infinity, uid)).isAdmitted, true);
    assert.deepEqual(Object.keys(pendingOf(scene)), [A]);
    store(scene, A, 1);
    await scene.conclude();
    await checkEnd(scene, true, "requested three times");
  });

  it("keeps its pods prepared when another request for them fails, as it may still be stored", async (t) => {
    let isFailing = false;
    const scene = await set(t, (method) => (isFailing && method === "POST" ? 500 : 200));
    assert.equal((await shrink(scene, Infinity)).isAdmitted, true);
    isFailing = true;
    assert.equal((await shrink(scene, Infinity, "other")).isAdmitted, false);
    assert.deepEqual([...leftPrepared(scene.seen)].toSorted(), [`${A}-1`, `${A}-2`]);
    scene.pass(91_000);
    await scene.conclude();
    isFailing = false;
    await checkEnd(scene, false, "never stored");
  });
});

describe("a time in the zone tracker", () => {
  it("is unchanged after any number of downscales that never happened", async (t) => {
    const scene = await set(t, undefined, inTracker);
    const long = new Date(scene.clock.now() - 100 * 3_600_000).toISOString();
    const tracker = scene.emulator.store.get("configmaps", "default", TRACKER);
    scene.emulator.store.update("configmaps", {
      ...tracker,
      data: { [A]: JSON.stringify({ lastDownscaled: long }), other: "kept" },
    } as never);
    for (const uid of ["first", "second", "third"]) {
      assert.equal((await shrink(scene, Infinity, uid)).isAdmitted, true);
      scene.pass(20_000);
    }
    assert.match(tracked(scene)[A] ?? "", new RegExp(`"before":"${long}"`));
    scene.pass(91_000);
    await scene.conclude();
    assert.deepEqual(tracked(scene), { [A]: JSON.stringify({ lastDownscaled: long }), other: "kept" });
  });
});

describe("a downscale that was stored, after which the zone grew again before it was concluded", () => {
  for (const [mode, recordOf] of MODES)
    for (const isConcluded of [false, true])
      it(`in ${mode}, ${isConcluded ? "concluded by the reconciler" : "seen only by the webhook"}: the other zone waits its time`, async (t) => {
        const scene = await set(t, undefined, recordOf);
        assert.equal((await shrink(scene, Infinity)).isAdmitted, true);
        store(scene, A, 1);
        store(scene, A, 3);
        const { [A]: time } = tracked(scene);
        if (isConcluded) {
          await scene.conclude();
          const written = scene.emulator.store.get("statefulsets.apps", "default", A)?.metadata.annotations?.[LAST];
          assert.ok(written);
          assert.deepEqual([pendingOf(scene), [...leftPrepared(scene.seen)], tracked(scene)[A]], [{}, [], time]);
        }
        const answer = await scene.call(scene.process().webhook, reviewOf(scene.zones[1], 2));
        assert.match(answer.message ?? "", /ingester-zone-a was downscaled at .* is labelled to wait 12h0m0s/);
      });
});

describe("a downscale that another webhook made smaller as it was stored", () => {
  for (const [mode, recordOf] of MODES)
    it(`in ${mode} has happened: its time stays, the pod that stays is told so, and the other zone waits`, async (t) => {
      const scene = await set(t, undefined, recordOf);
      assert.equal((await shrink(scene, Infinity)).isAdmitted, true);
      const { [A]: time } = tracked(scene);
      store(scene, A, 2);
      scene.pass(91_000);
      await scene.conclude();
      assert.deepEqual([[...leftPrepared(scene.seen)], tracked(scene)[A]], [[`${A}-2`], time]);
      const written = scene.emulator.store.get("statefulsets.apps", "default", A)?.metadata.annotations?.[LAST];
      assert.ok(written);
      const answer = await scene.call(scene.process().webhook, reviewOf(scene.zones[1], 2));
      assert.match(answer.message ?? "", /ingester-zone-a was downscaled at .* is labelled to wait 12h0m0s/);
    });
});

describe("a downscale that failed after the zone had grown again", () => {
  it("is undone at once: the earlier admission can no longer be stored", async (t) => {
    let isFailing = false;
    const scene = await set(t, (method) => (isFailing && method === "POST" ? 500 : 200));
    assert.equal((await shrink(scene, Infinity)).isAdmitted, true);
    store(scene, A, 1);
    store(scene, A, 3);
    isFailing = true;
    assert.equal((await shrink(scene, Infinity, "other")).isAdmitted, false);
    assert.deepEqual([...leftPrepared(scene.seen)], []);
  });
});

describe("pods whose preparation cannot be cancelled", () => {
  it("are called again until all have answered, which an Event and a log line report; the webhook's own undo is not enough", async (t) => {
    let isDown = true;
    const scene = await set(t, (method, pod) => {
      if (method === "POST") return pod.endsWith("-1") ? 500 : 200;
      return isDown ? 503 : 200;
    });
    assert.equal((await shrink(scene, Infinity)).isAdmitted, false);
    const other = await scene.call(scene.process().webhook, reviewOf(scene.zones[1], 3));
    assert.equal(other.allowed, true);
    assert.equal(pendingOf(scene)[A]?.refused, true);
    await scene.conclude();
    assert.equal(pendingOf(scene)[A]?.refused, true);
    isDown = false;
    scene.pass(30_000);
    await scene.conclude();
    assert.deepEqual([pendingOf(scene), [...leftPrepared(scene.seen)]], [{}, []]);
  });
});
