/** A namespace that forbids our calls, for example because it is being deleted, costs the others nothing. */
import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import type { Fault } from "../../../emulator/faults.ts";
import { deploy, tickOnce } from "../../stage.ts";
import { groupOf, GROUPS, setStatusStage, startSession } from "./status-stage.ts";
import { add } from "../../../builders.ts";

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
  const tick = async (): Promise<void> => {
    await session.statuses.beginTick(given.namespaces);
    const result = await tickOnce(stage, session.cluster, {
      namespaces: given.namespaces,
      onOutcome: (outcome, tookMs) => session.statuses.report(outcome, { tookMs, passes: 1 }),
    });
    session.statuses.endTick(result);
    await session.settled();
  };
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
