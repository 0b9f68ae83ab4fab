import assert from "node:assert/strict";
import https from "node:https";
import { test } from "node:test";
import { manualClock } from "./clock.ts";
import { createFaults } from "./faults.ts";
import type { Effect } from "./faults.ts";
import { dig } from "./objects.ts";
import { configMap, CONFIG_MAPS, startFixture } from "./fixture.ts";

const REFUSED: readonly [effect: Effect, code: number, reason: string][] = [
  [{ kind: "conflict" }, 409, "Conflict"],
  [{ kind: "tooMany", retryAfterSeconds: 3 }, 429, "TooManyRequests"],
  [{ kind: "forbidden" }, 403, "Forbidden"],
  [{ kind: "error" }, 500, "InternalError"],
];

for (const [effect, code, reason] of REFUSED)
  test(`the fault ${effect.kind} strikes the given number of times, and the request has no effect`, async (t) => {
    const { emulator, call } = await startFixture(t);
    emulator.faults.inject({ effect, verb: "create", resource: "configmaps", times: 1 });
    const refused = await call("POST", CONFIG_MAPS, configMap("a"));
    assert.deepEqual([refused.status, dig(refused.body, "reason")], [code, reason]);
    assert.equal(refused.headers["retry-after"], code === 429 ? "3" : undefined);
    assert.equal((await call("POST", CONFIG_MAPS, configMap("a"))).status, 201);
    assert.equal(emulator.faults.struck(), 1);
  });

test("dropAfter breaks the connection after the write took effect, dropBefore without an effect", async (t) => {
  const { emulator, call } = await startFixture(t);
  for (const [kind, name] of [
    ["dropAfter", "done"],
    ["dropBefore", "undone"],
  ] as const) {
    emulator.faults.inject({ effect: { kind }, verb: "create", times: 1 });
    await assert.rejects(call("POST", CONFIG_MAPS, configMap(name)));
  }
  assert.equal((await call("GET", `${CONFIG_MAPS}/done`)).status, 200);
  assert.equal((await call("GET", `${CONFIG_MAPS}/undone`)).status, 404);
});

test("latency passes on the emulator's clock, and a request's own timeout ends it", async (t) => {
  const clock = manualClock();
  const { emulator, call } = await startFixture(t, { clock });
  emulator.faults.inject({ effect: { kind: "latency", ms: 5000 }, times: 2, verb: "list" });
  const waiting = Promise.all([call("GET", CONFIG_MAPS), call("GET", `${CONFIG_MAPS}?timeout=2s`)]);
  while (clock.pending() < 3) await new Promise(setImmediate);
  await clock.advance(5000);
  assert.deepEqual(
    (await waiting).map(({ status }) => status),
    [200, 504],
  );
});

test("cut watches end at once, and those of other resources continue", async (t) => {
  const { emulator } = await startFixture(t);
  const open = (path: string): Promise<{ broken: Promise<void> }> =>
    new Promise((resolve, reject) => {
      const headers = { authorization: `Bearer ${emulator.token}` };
      const get = https.get(`${emulator.url}${path}`, { ca: emulator.caPem, headers }, (response) => {
        const broken = new Promise<void>((done) => response.once("error", () => done()));
        resolve({ broken });
      });
      get.once("error", reject);
    });
  const cut = await open(`${CONFIG_MAPS}?watch=1`);
  const kept = await open("/api/v1/pods?watch=1");
  assert.equal(emulator.faults.cutWatches("configmaps"), 1);
  await cut.broken;
  assert.equal(emulator.faults.cutWatches(), 1);
  await kept.broken;
});

test("the same seed gives the same random numbers", () => {
  const strikes = (seed: number): string => {
    const faults = createFaults(seed);
    faults.inject({ effect: { kind: "error" }, probability: 0.5 });
    const request = { resource: "pods" } as unknown as Parameters<typeof faults.strike>[0];
    return Array.from({ length: 40 }, () => faults.strike(request).length).join("");
  };
  assert.equal(strikes(7), strikes(7));
  assert.notEqual(strikes(7), strikes(8));
  assert.match(strikes(7), /01|10/);
});
