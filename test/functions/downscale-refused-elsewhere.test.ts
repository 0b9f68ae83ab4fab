/** Downscales that are admitted here and never stored because another webhook refuses each request. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Answer } from "../../functions/http/webhook.ts";
import { either, some } from "../runs.ts";
import { A, MODES, type Scene, set } from "./downscale-scene.ts";
import { reviewOf, scaleReviewOf } from "./stage.ts";

/** The interval of a HorizontalPodAutoscaler's requests. */
const EVERY_MS = 15_000;
const TICK_MS = 5000;
/**
 * A zone holds the others for 90 s of admissions and 90 s more; their next request may come 15 s later, and a dead
 * reconciler keeps the Lease as long.
 */
const BOUND_MS = 180_000 + 2 * EVERY_MS;

interface Trial {
  /** Milliseconds by which the other zone's requests, and the ticks, come after those of the zone that is refused. */
  readonly otherAfterMs: number;
  readonly tickAfterMs: number;
  /** The call at which each process dies that gets a request for the refused zone. */
  readonly diesAt?: number;
}

/**
 * Requests A and B in turn until B is admitted; resolves with the milliseconds until then and the answers for A, or
 * fails after 10 minutes.
 */
async function waitForOther(
  scene: Scene,
  { otherAfterMs, tickAfterMs, diesAt }: Trial,
): Promise<{ waitedMs: number; made: number }> {
  let calls = 0;
  for (let ms = 0; ms <= 600_000; ms += 1000, scene.pass(1000)) {
    if (ms % EVERY_MS === 0) calls = Math.max(calls, (await scene.shrink(diesAt, `a-${ms}`)).made);
    if (ms % TICK_MS === tickAfterMs) await scene.conclude();
    if (ms % EVERY_MS !== otherAfterMs) continue;
    if ((await scene.shrinkB(1, `b-${ms}`)).allowed) return { waitedMs: ms, made: calls };
  }
  throw new assert.AssertionError({ message: "the other zone is held for ever" });
}

const ORDERS = MODES.flatMap(([mode, isTracked]) =>
  [
    { otherAfterMs: 1000, tickAfterMs: 0 },
    { otherAfterMs: 14_000, tickAfterMs: 0 },
    { otherAfterMs: 7000, tickAfterMs: 2000 },
    { otherAfterMs: 1000, tickAfterMs: 4000 },
  ].map((order) => ({ mode, isTracked, ...order })),
);

describe("a downscale that another webhook always refuses", () => {
  for (const { mode, isTracked, otherAfterMs, tickAfterMs } of some(ORDERS))
    it(`in ${mode} leaves a turn to the other zone, which requests ${otherAfterMs} ms and is concluded ${tickAfterMs} ms after it`, async () => {
      const scene = set({ isTracked });
      const { waitedMs } = await waitForOther(scene, { otherAfterMs, tickAfterMs });
      assert.ok(waitedMs <= BOUND_MS, `${waitedMs} ms`);
      // The other zone may come before the tick.
      scene.pass(TICK_MS);
      await scene.conclude();
      assert.deepEqual(
        scene.prepared().filter((pod) => pod.startsWith(A)),
        [],
      );
    });

  it("does so although each called process dies at one of its calls", async () => {
    let trials = 0;
    for (let diesAt = 0, calls = Infinity; diesAt <= calls + 0.5; diesAt += either(0.5, 4.5)) {
      const scene = set();
      const { waitedMs, made } = await waitForOther(scene, {
        otherAfterMs: 7000,
        tickAfterMs: 2000,
        diesAt,
      });
      if (made < diesAt) calls = made;
      trials++;
      assert.ok(waitedMs <= BOUND_MS, `died at call ${diesAt}: ${waitedMs} ms`);
    }
    assert.ok(trials > either(15, 2), String(trials));
  });
});

/** Requests the downscale of A at each of these times, milliseconds from now. */
async function shrinkAt(scene: Scene, times: readonly number[], review = scaleReviewOf): Promise<readonly Answer[]> {
  const answers: Answer[] = [];
  let now = 0;
  for (const at of times) {
    scene.pass(at - now);
    now = at;
    answers.push(await scene.shrinkA(1, `at-${at}`, review));
  }
  return answers;
}

describe("a zone whose downscales are not stored", () => {
  it("gets the reason, the start and the duration of the refusal; nothing is written, and no pod is called", async () => {
    const scene = set();
    await shrinkAt(scene, [0, 89_000]);
    const { since } = scene.pending()[A] ?? {};
    const before = { note: scene.pending(), requests: scene.seen.length };
    const [answer] = (scene.pass(10_000), await shrinkAt(scene, [0]));
    assert.deepEqual([answer?.allowed, answer?.reason], [false, "NeverStored"]);
    assert.match(
      answer?.message ?? "",
      new RegExp(
        `^downscale of statefulsets/${A} .* is not allowed because its downscales have been admitted since ${since} and none was stored, so something else refuses them; it is refused until \\S+Z \\(for another 110 s\\), so that`,
      ),
    );
    assert.deepEqual({ note: scene.pending(), requests: scene.seen.length }, before);
  });

  const every = (ms: number, times: number): number[] => Array.from({ length: times }, (_, i) => i * ms);
  const RETRIES: readonly [string, readonly number[], string][] = [
    ["each 0.5 s for 10 s, as the API server retries conflicts", every(500, 20), "y".repeat(20)],
    [
      "each 14.5 s, like an autoscaler: for 90 s, then no more until 120 s after the last",
      every(14_500, 16),
      "yyyyyyynnnnnnnny",
    ],
  ];
  for (const [name, times, expected] of RETRIES)
    for (const [kind, review] of [
      ["StatefulSet", reviewOf],
      ["Scale", scaleReviewOf],
    ] as const)
      it(`is requested through its ${kind} ${name}`, async () => {
        const answers = await shrinkAt(set(), times, review);
        assert.equal(answers.map(({ allowed }) => (allowed ? "y" : "n")).join(""), expected);
      });

  it("is requested again: once one is stored, the next one begins a new turn", async () => {
    const scene = set();
    await shrinkAt(scene, [0, 89_000]);
    scene.pass(30_000);
    const next = async (): Promise<boolean> => (await scene.shrinkA(0, "next")).allowed;
    assert.equal(await next(), false);
    scene.store(1);
    assert.equal(await next(), true);
  });

  it("is also refused after its preparation was cancelled: otherwise the other zone would never have its turn", async () => {
    const scene = set();
    await shrinkAt(scene, [0, 89_000]);
    scene.pass(91_000);
    await scene.conclude();
    assert.deepEqual(scene.prepared(), []);
    const again = async (uid: string): Promise<boolean> => (await scene.shrink(Infinity, uid)).isAdmitted;
    assert.equal(await again("early"), false);
    scene.pass(30_000);
    assert.equal(await again("later"), true);
  });
});
