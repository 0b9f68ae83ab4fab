/** Times that others write, beyond those that a status can hold: neither their group nor others may suffer. */
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { DELAYED, MIRROR, mirrorStage, type MirrorStage } from "../../scaling/mirror-stage.ts";
import { deploy, notifierOf } from "../../stage.ts";
import { groupOf, rolloutGroupDefinition, startSession } from "./status-stage.ts";

let on: MirrorStage;
beforeEach(async () => {
  on = await mirrorStage();
  on.stage.emulator.store.create("customresourcedefinitions.apiextensions.k8s.io", rolloutGroupDefinition());
});
afterEach(() => on.stage.close());

const MS = Date.UTC(2026, 0, 1);

describe("a pod that says it was prepared in a far future", () => {
  for (const [what, timestamp] of [
    ["in milliseconds", MS],
    ["the last second of the year 9999", 253_402_300_799],
    ["as late as a clock can say", 8.64e12 - 1],
  ] as const)
    it(`${what}: holds its own zone alone, and the status says so`, async (t) => {
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
