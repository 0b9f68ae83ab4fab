/**
 * Several jobs and healers on one Secret, every order of their calls (small cases) or many of them (larger), with kills and lost answers.
 * The cluster is the embedded one's store behind the port, without a network, so that the scheduler alone decides who is next.
 */
import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { describe, it } from "node:test";
import fc from "fast-check";
import { healCaBundles } from "../../../infra/certs/heal.ts";
import type { Certificates } from "../../../infra/certs/generate.ts";
import type { Clock } from "../../../infra/clock.ts";
import type { Cluster } from "../../../infra/cluster.ts";
import { manualClock } from "../../emulator/clock.ts";
import { createStore, type Store } from "../../emulator/store.ts";
import * as on from "./stage.ts";
import { portOf, type Gate } from "./port.ts";

const T0 = Date.UTC(2026, 0, 1);
const first = await on.issueAt(() => T0)();
const later = await Promise.all(Array.from({ length: 6 }, (_, at) => on.issueAt(() => T0 + 240 * on.DAY + at)()));

interface World {
  readonly store: Store;
  /** What must never happen, and did. */
  readonly violations: string[];
  readonly port: (gate: Gate) => Cluster;
  readonly clock: Clock;
  readonly issue: () => Promise<Certificates>;
}

/** `day` 0 begins without a Secret; later days with the pair of day 0, which every configuration trusts. */
function createWorld(day: 0 | 240): World {
  const time = manualClock(T0 + day * on.DAY);
  const store = createStore(time);
  const violations: string[] = [];
  if (day > 0) on.putSecret(store, { ca: `${first.caPem}\n`, cert: first.certPem, key: first.keyPem });
  const given = day > 0 ? { caBundle: `${first.caPem}\n` } : {};
  on.addHook(store, on.VALIDATING, "no-downscale", given);
  on.addHook(store, on.MUTATING, "prepare-downscale", given);

  // A reader may serve any certificate that the Secret ever served, for as long as it likes.
  const served = new Set(day > 0 ? [first.certPem] : []);
  const check = (): void => {
    const cert = on.secretOf(store)["tls.crt"] ?? on.secretOf(store)["cert"];
    if (cert !== undefined) served.add(cert);
    for (const [resource, name] of [
      [on.VALIDATING, "no-downscale"],
      [on.MUTATING, "prepare-downscale"],
    ] as const) {
      for (const bundle of on.bundlesOf(store, resource, name)) {
        const refused = bundle === "" ? [] : [...served].filter((pem) => !on.accepts(bundle, pem));
        if (refused.length > 0) violations.push(`${name} refuses ${refused.map((pem) => new X509Certificate(pem).validFrom).join()}`);
      }
    }
  };
  store.subscribe(check);
  let made = 0;
  return {
    store,
    violations,
    port: (gate) => portOf(store, gate),
    // Nobody waits for time here, but for his turn: sleeping is one more call that the scheduler may put off.
    clock: { now: () => time.now(), monotonic: () => time.now(), sleep: (ms) => time.advance(ms) },
    issue: async () => later[made++ % later.length] ?? first,
  };
}

function checkEnd({ store, violations }: World): void {
  const { ca = "", cert = "" } = on.secretOf(store);
  assert.ok(on.accepts(ca, cert), "the Secret's own CA signs its certificate");
  for (const [resource, name] of [
    [on.VALIDATING, "no-downscale"],
    [on.MUTATING, "prepare-downscale"],
  ] as const) {
    assert.deepEqual(on.bundlesOf(store, resource, name), [ca], `${name} has the bundle`);
  }
  assert.deepEqual(violations, []);
}

const job = (world: World, gate: Gate): Promise<unknown> => {
  const clock = { ...world.clock, sleep: (ms: number) => gate("sleep", () => world.clock.sleep(ms)) };
  return on.runJob(world.port(gate), clock, { issue: world.issue }).result;
};

describe("certificate jobs in each other's way", () => {
  for (const day of [0, 240] as const) {
    it(`two jobs and two healers on day ${day} end with one pair that everything trusts, and trust no less meanwhile`, async () => {
      await fc.assert(
        fc.asyncProperty(fc.scheduler(), async (scheduler) => {
          const world = createWorld(day);
          const gate: Gate = (_what, run) => scheduler.schedule(Promise.resolve()).then(run);
          const secret = { namespace: "default", secretName: on.NAME };
          const all = Promise.all([
            job(world, gate),
            job(world, gate),
            healCaBundles(world.port(gate), secret),
            healCaBundles(world.port(gate), secret),
          ]);
          const results = await scheduler.waitFor(all);
          assert.deepEqual(results.slice(0, 2), [0, 0]);
          checkEnd(world);
          const leaf = on.secretOf(world.store)["cert"];
          assert.ok(leaf !== first.certPem && on.secretOf(world.store)["next.crt"] === undefined);
        }),
        { numRuns: 150 },
      );
    });

    it(`a job on day ${day} killed at any call, before or after it took effect, is finished by the next`, async () => {
      const whole: string[] = [];
      await job(createWorld(day), (what, run) => (whole.push(what), run()));
      const kills = whole.flatMap((what, at) => [
        { at, what, after: false },
        { at, what, after: true },
      ]);
      assert.ok(kills.length >= 14);
      for (const { at, after } of kills) {
        const world = createWorld(day);
        let count = 0;
        const never = new Promise<never>(() => {});
        await new Promise<void>((dead) => {
          void job(world, async (_what, run) => {
            if (count++ !== at) return run();
            if (after) await run().catch(() => {});
            dead();
            return never;
          });
        });
        assert.equal(await job(world, (_what, run) => run()), 0);
        checkEnd(world);
      }
    });
  }

  it("a healer that read the Secret long ago does not put an older bundle back", async () => {
    const world = createWorld(240);
    let release = (): void => {};
    const held = new Promise<void>((resolve) => (release = resolve));
    // Stops the healer between its reads and its first patch.
    const slow = healCaBundles(
      world.port(async (what, run) => (what === "patch" ? held.then(run) : run())),
      { namespace: "default", secretName: on.NAME },
    );
    on.addHook(world.store, on.VALIDATING, "late");
    assert.equal(await job(world, (_what, run) => run()), 0);
    release();
    await slow;
    checkEnd(world);
  });
});
