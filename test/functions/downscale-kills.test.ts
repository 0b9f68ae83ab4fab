/** A webhook process that dies between any two calls of a downscale, and a reconciler that dies while it puts that right. */
import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { createPrepareDownscale } from "../../functions/downscale/prepare-downscale.ts";
import { createBackgroundTasks } from "../../functions/http/background-tasks.ts";
import { type Clock, systemClock } from "../../infra/clock.ts";
import type { Cluster } from "../../infra/kubernetes/cluster.ts";
import type { PodHttp } from "../../infra/pod-http.ts";
import type { StatefulSet } from "../../infra/kubernetes/resources.ts";
import { createSettler } from "../../reconciler/pending-downscales/settle-downscales.ts";
import {
  A,
  B,
  inAnnotation,
  inTracker,
  LAST,
  leftPrepared,
  MIN_TIME,
  MODES,
  pendingOf,
  type RecordOf,
  settle as settleTimes,
  tracked,
  TRACKER,
} from "./prepare-stage.ts";
import { ask, createZone, keepingLog, playPods, reviewOf, scaleReviewOf, setStage, type Stage } from "./stage.ts";

class Killed extends Error {}

/** A process that dies before its call of this number takes effect or, at a half, before it hears of it. */
function live(cluster: Cluster, podHttp: PodHttp, diesAt: number) {
  let made = 0;
  const call = async <T>(effect: () => Promise<T>): Promise<T> => {
    const number = made++;
    if (number >= diesAt) throw new Killed();
    const result = await effect();
    if (number + 0.5 >= diesAt) throw new Killed();
    return result;
  };
  async function* pages<T>(given: AsyncGenerator<T>): AsyncGenerator<T> {
    const all: T[] = [];
    await call(async () => {
      for await (const page of given) all.push(page);
    });
    yield* all;
  }
  const mortal: Cluster = {
    ...cluster,
    list: (...args) => pages(cluster.list(...args)),
    get: (...args) => call(() => cluster.get(...args)),
    create: (...args) => call(() => cluster.create(...args)),
    replace: (...args) => call(() => cluster.replace(...args)),
    patch: (...args) => call(() => cluster.patch(...args)),
  };
  return { cluster: mortal, podHttp: { send: (...args) => call(() => podHttp.send(...args)) } satisfies PodHttp, made: () => made };
}

interface Scene extends Stage {
  readonly seen: string[];
  readonly zones: readonly [StatefulSet, StatefulSet];
  readonly clock: Clock;
  /** Moves the time on, milliseconds. */
  pass(ms: number): void;
  /** The webhook of a process that dies at this call. */
  process(diesAt?: number): { readonly webhook: ReturnType<typeof createPrepareDownscale>; readonly made: () => number };
  /** A look of a reconciler that dies at this call; resolves with the calls that it made. */
  settle(diesAt?: number): Promise<number>;
}

async function set(t: TestContext, script?: Parameters<typeof playPods>[1], recordOf: RecordOf = inAnnotation): Promise<Scene> {
  const stage = await setStage(t);
  settleTimes(stage, recordOf);
  const { podHttp, seen } = await playPods(t, script);
  let later = 0;
  const clock = { ...systemClock, now: () => systemClock.now() + later };
  const labels = { [MIN_TIME]: "12h" };
  return {
    ...stage,
    seen,
    clock,
    zones: [createZone(stage, A, { labels }), createZone(stage, B, { labels })],
    pass: (ms) => void (later += ms),
    process(diesAt = Infinity) {
      const life = live(stage.cluster, podHttp, diesAt);
      const tools = {
        ...life,
        clock,
        clusterDomain: "x",
        tasks: createBackgroundTasks(),
        record: recordOf({ cluster: life.cluster, clock }),
      };
      return { webhook: createPrepareDownscale(tools), made: life.made };
    },
    async settle(diesAt = Infinity) {
      const life = live(stage.cluster, podHttp, diesAt);
      const settle = createSettler({ ...life, clock, log: keepingLog().log, clusterDomain: "x", zoneTracker: TRACKER });
      const input = { namespaces: ["default"], fence: { write: () => ({}) }, recorder: { record: () => {} } };
      await settle({ ...input, signal: new AbortController().signal });
      return life.made();
    },
  };
}

/** As the API server stores what was admitted. */
function store({ emulator }: Scene, name: string, replicas: number): void {
  const now = emulator.store.get("statefulsets.apps", "default", name) as unknown as StatefulSet;
  emulator.store.update("statefulsets.apps", { ...now, spec: { ...now.spec, replicas } } as never);
}

/** Whatever happened before: nothing is pending, no pod of the 3 is left prepared that stays, and B waits for A only if A was scaled down. */
async function checkEnd(scene: Scene, isStored: boolean, when: string): Promise<void> {
  assert.deepEqual(pendingOf(scene), {}, when);
  const prepared = [...leftPrepared(scene.seen)].toSorted();
  assert.deepEqual(prepared, isStored ? [`${A}-1`, `${A}-2`] : [], when);
  const written = scene.emulator.store.get("statefulsets.apps", "default", A)?.metadata.annotations?.[LAST];
  assert.equal(written !== undefined, isStored, when);
  const answer = await ask(scene.process().webhook, reviewOf(scene.zones[1], 1, { uid: "end" }));
  if (!isStored) assert.equal(tracked(scene)[A], undefined, when);
  if (isStored) assert.match(answer.message ?? "", /ingester-zone-a was downscaled at .* is labelled to wait 12h0m0s/, when);
  else assert.equal(answer.allowed, true, `${when}: ${answer.message}`);
}

/** Asks for the downscale of A through its scale in a process that dies at this call; true if it was admitted. */
async function shrink(scene: Scene, diesAt: number, uid = "first"): Promise<{ isAdmitted: boolean; made: number }> {
  const { webhook, made } = scene.process(diesAt);
  const answer = await ask(webhook, scaleReviewOf(scene.zones[0], 1, { uid })).catch(() => undefined);
  return { isAdmitted: answer?.allowed === true, made: made() };
}

describe("a downscale whose process dies", () => {
  for (const [isStored, [mode, recordOf]] of [false, true].flatMap((one) => MODES.map((two) => [one, two] as const)))
    it(`in ${mode} at any call, and ${isStored ? "is" : "is not"} stored if it was admitted: the reconciler leaves no pod prepared, and no wait without a downscale`, async (t) => {
      const seen = { admitted: 0, prepared: 0, steps: 0 };
      for (let diesAt = 0, calls = Infinity; diesAt <= calls + 0.5; diesAt += 0.5) {
        const scene = await set(t, undefined, recordOf);
        const { isAdmitted, made } = await shrink(scene, diesAt);
        if (made < diesAt) calls = made;
        seen.steps++;
        if (isAdmitted) seen.admitted++;
        if (leftPrepared(scene.seen).size > 0) seen.prepared++;
        if (isAdmitted && isStored) store(scene, A, 1);
        scene.pass(91_000);
        await scene.settle();
        await checkEnd(scene, isAdmitted && isStored, `died at call ${diesAt}`);
      }
      assert.ok(seen.admitted > 0 && seen.prepared > 3 && seen.steps > 15, JSON.stringify(seen));
    });

  for (const [isStored, [mode, recordOf]] of [false, true].flatMap((one) => MODES.map((two) => [one, two] as const)))
    it(`in ${mode}, and a reconciler that dies at any call of its own: ${isStored ? "stored" : "never stored"}`, async (t) => {
      let steps = 0;
      for (let diesAt = 0, calls = Infinity; diesAt <= calls + 0.5; diesAt += 0.5) {
        const scene = await set(t, undefined, recordOf);
        assert.equal((await shrink(scene, Infinity)).isAdmitted, true);
        if (isStored) store(scene, A, 1);
        scene.pass(91_000);
        const made = await scene.settle(diesAt);
        if (made < diesAt) calls = made;
        steps++;
        // The Lease that it died with.
        scene.pass(16_000);
        await scene.settle();
        await checkEnd(scene, isStored, `died at call ${diesAt}`);
      }
      assert.ok(steps > 10, String(steps));
    });
});

describe("a downscale that was admitted", () => {
  it("is not touched while it may still be stored, and holds the other zone until then", async (t) => {
    const scene = await set(t);
    assert.equal((await shrink(scene, Infinity)).isAdmitted, true);
    scene.pass(80_000);
    await scene.settle();
    assert.deepEqual([...leftPrepared(scene.seen)].toSorted(), [`${A}-1`, `${A}-2`]);
    const early = await ask(scene.process().webhook, reviewOf(scene.zones[1], 1));
    assert.match(early.message ?? "", /ingester-zone-a was downscaled at/);
  });

  it("and is admitted again, as the API server asks again after a conflict, is one downscale", async (t) => {
    const scene = await set(t);
    for (const uid of ["first", "first", "second"]) assert.equal((await shrink(scene, Infinity, uid)).isAdmitted, true);
    assert.deepEqual(Object.keys(pendingOf(scene)), [A]);
    store(scene, A, 1);
    await scene.settle();
    await checkEnd(scene, true, "asked three times");
  });

  it("keeps its pods prepared when another request for them fails, as it may still be stored", async (t) => {
    let isFailing = false;
    const scene = await set(t, (method) => (isFailing && method === "POST" ? 500 : 200));
    assert.equal((await shrink(scene, Infinity)).isAdmitted, true);
    isFailing = true;
    assert.equal((await shrink(scene, Infinity, "other")).isAdmitted, false);
    assert.deepEqual([...leftPrepared(scene.seen)].toSorted(), [`${A}-1`, `${A}-2`]);
    scene.pass(91_000);
    await scene.settle();
    isFailing = false;
    await checkEnd(scene, false, "never stored");
  });
});

describe("a time in the zone tracker", () => {
  it("is as it was before, after any number of downscales that never happened", async (t) => {
    const scene = await set(t, undefined, inTracker);
    const long = new Date(Date.now() - 100 * 3_600_000).toISOString();
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
    await scene.settle();
    assert.deepEqual(tracked(scene), { [A]: JSON.stringify({ lastDownscaled: long }), other: "kept" });
  });
});

describe("a downscale that was stored, after which the zone grew again before anybody settled it", () => {
  for (const [mode, recordOf] of MODES)
    for (const isSettled of [false, true])
      it(`in ${mode}, ${isSettled ? "settled by the reconciler" : "seen by the webhook alone"}: the other zone waits its time`, async (t) => {
        const scene = await set(t, undefined, recordOf);
        assert.equal((await shrink(scene, Infinity)).isAdmitted, true);
        store(scene, A, 1);
        store(scene, A, 3);
        const { [A]: time } = tracked(scene);
        if (isSettled) {
          await scene.settle();
          const written = scene.emulator.store.get("statefulsets.apps", "default", A)?.metadata.annotations?.[LAST];
          assert.ok(written);
          assert.deepEqual([pendingOf(scene), [...leftPrepared(scene.seen)], tracked(scene)[A]], [{}, [], time]);
        }
        const answer = await ask(scene.process().webhook, reviewOf(scene.zones[1], 2));
        assert.match(answer.message ?? "", /ingester-zone-a was downscaled at .* is labelled to wait 12h0m0s/);
      });
});

describe("a downscale that failed after the zone had grown again", () => {
  it("is undone at once: what was admitted before can no longer be stored", async (t) => {
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

describe("pods that cannot be told that they stay", () => {
  it("are told again until all have been, which an Event and a line say; the undo of the webhook alone is not enough", async (t) => {
    let isDown = true;
    const scene = await set(t, (method, pod) => {
      if (method === "POST") return pod.endsWith("-1") ? 500 : 200;
      return isDown ? 503 : 200;
    });
    assert.equal((await shrink(scene, Infinity)).isAdmitted, false);
    const other = await ask(scene.process().webhook, reviewOf(scene.zones[1], 3));
    assert.equal(other.allowed, true);
    assert.equal(pendingOf(scene)[A]?.refused, true);
    await scene.settle();
    assert.equal(pendingOf(scene)[A]?.refused, true);
    isDown = false;
    await scene.settle();
    assert.deepEqual([pendingOf(scene), [...leftPrepared(scene.seen)]], [{}, []]);
  });
});
