import assert from "node:assert/strict";
import { it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { QueryAnswer } from "../../../../infra/prometheus/answer.ts";
import { applySet, createRollout, FIRING, PHASED, setPhasedStage } from "./stage.ts";

it("70 PhasedRollouts that wait for a Prometheus without an answer do not keep the next one from its visit", async () => {
  const stage = await setPhasedStage();
  try {
    const names = Array.from({ length: 70 }, (_, i) => `db-${i}`);
    const create = async (name: string): Promise<void> => {
      await applySet(stage, "x:1", { name, replicas: 1 });
      const query = { expr: `up{db="${name}"} == 0` };
      createRollout(stage, { name, spec: { targetRef: name }, check: { initialDelaySeconds: 0 }, query });
    };
    const countAsked = (): number => new Set(stage.asked.map(({ expr }) => expr)).size;
    for (const name of names) await create(name);
    await stage.time.advance(10_000);
    await stage.tick();
    stage.answer = FIRING;
    for (const name of names) await applySet(stage, "x:2", { name, replicas: 1 });
    await stage.time.advance(1000);
    for (let i = 0; i < 100 && countAsked() < names.length; i++) {
      await stage.tick();
      await stage.time.advance(1000);
    }
    assert.equal(countAsked(), names.length);
    const waiting = Promise.withResolvers<QueryAnswer>();
    stage.answer = () => waiting.promise;
    await create("zz");
    await stage.time.advance(10_000);
    const ticking = stage.tick();
    const isManaged = (): boolean =>
      stage.emulator.store.get(PHASED, "default", "zz")?.metadata.finalizers !== undefined;
    for (let i = 0; i < 6000 && !isManaged(); i++) await sleep(10);
    const isVisited = isManaged();
    waiting.resolve(FIRING);
    await ticking;
    assert.ok(isVisited);
  } finally {
    await stage.close();
  }
});
