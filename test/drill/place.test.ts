/** What a drill leaves behind is removed, and nothing else. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { removePlace } from "./place.ts";
import { LABEL, marks } from "./plan.ts";
import { BUDGETS } from "../simulation/names.ts";
import { NAMESPACE, openInstallation } from "./installation.ts";
import { make } from "../builders/objects.ts";

const RUN = "zonewise-drill-b1c2d";
const budget = (name: string, run: string, now: number) =>
  make("ZoneAwarePodDisruptionBudget", name, {
    namespace: NAMESPACE,
    metadata: { ...marks(run, now) },
    spec: { maxUnavailable: 1, selector: { matchLabels: { [LABEL]: run } } },
  });

describe("the place of a drill", { timeout: 300_000 }, () => {
  for (const run of ["mine", `${RUN}-data`])
    it(`what is labelled ${run}, which is no name of a run, is not touched by --clean, however old it is`, async (t) => {
      const { store, play } = await openInstallation(t);
      store.create(BUDGETS, budget("mine", run, 0));
      const { code, out } = await play({ clean: true });
      assert.deepEqual([code, out], [0, "nothing is left\n"]);
      assert.ok(store.get(BUDGETS, NAMESPACE, "mine"));
    });

  it("what a run has left is removed by --clean", async (t) => {
    const { store, play } = await openInstallation(t);
    store.create(BUDGETS, budget(RUN, RUN, 0));
    assert.equal((await play({ clean: true })).code, 0);
    assert.equal(store.get(BUDGETS, NAMESPACE, RUN), undefined);
  });

  it("what is made by a call that takes effect after the Ctrl-C is removed, too", async (t) => {
    const { store, run, admitCaller } = await openInstallation(t);
    const caller = admitCaller();
    const removed = removePlace(caller, { run: RUN, namespace: NAMESPACE });
    await run(800);
    store.create(BUDGETS, budget(RUN, RUN, caller.clock.now()));
    await run(10_000);
    assert.equal(await removed, true);
    assert.equal(store.get(BUDGETS, NAMESPACE, RUN), undefined);
  });
});
