/** What others forbid, or write beyond what a status can hold, costs neither their group nor others anything. */
import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { define } from "../../../demo/definitions.ts";
import type { Fault } from "../../../emulator/faults.ts";
import { DELAYED, MIRROR, mirrorStage } from "../../scaling/mirror-stage.ts";
import { deploy, notifierOf } from "../../stage.ts";
import { groupOf, GROUPS, setStatusStage, startSession } from "./status-stage.ts";
import { add } from "../../../builders/objects.ts";

const ZONES = "statefulsets.apps";

/** A group in the namespace `default` and one of the same name in `going`; resolves with a tick over both. */
async function start(t: TestContext, given: { readonly namespaces: readonly string[]; readonly forbidden: Fault }) {
  const stage = await setStatusStage();
  t.after(() => stage.close());
  const { store, faults } = stage.emulator;
  add(store, "Namespace", "going");
  deploy(stage, "x:1");
  const zone = store.get(ZONES, "default", "ingester-zone-a") ?? assert.fail();
  const { name, labels = {} } = zone.metadata;
  store.create(ZONES, { ...zone, metadata: { name, labels, namespace: "going" } });
  await stage.time.advance(2000);
  const session = startSession(stage);
  t.after(() => session.end());
  const allow = faults.inject(given.forbidden);
  const tick = () => session.tick({ namespaces: given.namespaces });
  return { stage, session, allow, tick, inGoing: () => store.get(GROUPS, "going", "ingester") };
}

describe("RolloutGroups, if one namespace forbids", () => {
  it("a write: those of others are written, and its own is tried again after a minute", async (t) => {
    const forbidden: Fault = { verb: "create", resource: GROUPS, namespace: "going", effect: { kind: "forbidden" } };
    const { stage, session, allow, tick, inGoing } = await start(t, { namespaces: [""], forbidden });
    for (const image of ["x:2", "x:3"]) {
      deploy(stage, image);
      await stage.time.advance(1000);
      await tick();
      assert.equal(groupOf(stage)?.status?.phase, "RollingOut");
      await stage.time.advance(5000);
    }
    const isCreate = (call: string): boolean => call.startsWith("POST") && call.includes("rolloutgroups");
    assert.equal(session.calls.filter(isCreate).length, 2);
    const generations = groupOf(stage)?.status?.zones.map(({ observedGeneration }) => observedGeneration);
    assert.deepEqual(generations, [3, 3, 3]);
    allow();
    await stage.time.advance(60_000);
    await tick();
    assert.ok(inGoing());
  });

  it("to be listed: those of others are written, and one log line tells it", async (t) => {
    const forbidden: Fault = { verb: "list", resource: GROUPS, namespace: "going", effect: { kind: "forbidden" } };
    const { stage, session, allow, tick, inGoing } = await start(t, { namespaces: ["going", "default"], forbidden });
    for (let i = 0; i < 3; i++) {
      await tick();
      assert.equal(groupOf(stage)?.status?.phase, "Ready");
      await stage.time.advance(30_000);
    }
    assert.equal(inGoing(), undefined);
    const told = session.logged.filter(([, text]) => text === "the rollout groups could not be read");
    assert.deepEqual(
      told.map(([level, , fields]) => [level, fields?.["namespace"]]),
      [["warn", "going"]],
    );
    allow();
    await tick();
    assert.ok(inGoing());
  });
});

const MS = Date.UTC(2026, 0, 1);

describe("a pod that says it was prepared in a far future", () => {
  for (const [what, timestamp] of [
    ["in milliseconds", MS],
    ["the last second of the year 9999", 253_402_300_799],
    ["as late as a clock can say", 8.64e12 - 1],
  ] as const)
    it(`${what}: holds its own zone alone, and the status says so`, async (t) => {
      const on = await mirrorStage();
      t.after(() => on.stage.close());
      await define(on.stage.emulator.store, ["rolloutgroups"]);
      await on.zones({ replicas: 3, annotations: { ...MIRROR, ...DELAYED } });
      deploy(on.stage, "x:1", { group: "other" });
      await on.stage.time.advance(3000);
      await on.reference(2, 3);
      const session = startSession(on.stage);
      t.after(() => session.end());
      const podHttp = { send: async () => ({ status: 200, body: JSON.stringify({ timestamp }) }) };
      const choices = { podHttp, notifier: notifierOf(on.stage, podHttp) };
      deploy(on.stage, "x:2", { group: "other" });
      await on.stage.time.advance(1000);
      const { outcomes } = await session.tick(choices);
      const states = outcomes.map(({ group, state }) => [group, state]).toSorted();
      assert.deepEqual(states, [
        ["ingester", "settled"],
        ["other", "acted"],
      ]);
      const [block] = groupOf(on.stage)?.status?.holds ?? [];
      assert.equal(block?.reason, timestamp > 253_402_300_799 ? "PrepareFailed" : "DelayNotReached");
    });
});
