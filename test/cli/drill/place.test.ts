/** What a drill leaves behind is removed, and nothing else. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { removePlace } from "../../../cli/drill/act/place.ts";
import { marks } from "../../../cli/drill/plan.ts";
import { openInstallation } from "./stage.ts";

const RUN = "zonewise-drill-b1c2d";
const buildNamespace = (name: string, run: string, now: number) => ({
  apiVersion: "v1",
  kind: "Namespace",
  metadata: { name, ...marks(run, now) },
});

describe("the place of a drill", { timeout: 300_000 }, () => {
  for (const [what, name, run] of [
    ["of another name", "mine", RUN],
    ["whose label names no run", "mine", "mine"],
    ["whose name only begins like a run's", `${RUN}-data`, `${RUN}-data`],
  ] as const)
    it(`a namespace ${what} is not touched by --clean, however old its annotation is`, async (t) => {
      const { store, play } = await openInstallation(t);
      store.create("namespaces", buildNamespace(name, run, 0));
      const { code, out } = await play({ clean: true });
      assert.deepEqual([code, out], [0, "nothing is left\n"]);
      const kept = store.get("namespaces", undefined, name);
      assert.ok(kept && kept.metadata.deletionTimestamp === undefined);
    });

  it("what a run has left is removed by --clean", async (t) => {
    const { store, play } = await openInstallation(t);
    store.create("namespaces", buildNamespace(RUN, RUN, 0));
    assert.equal((await play({ clean: true })).code, 0);
    assert.equal(store.get("namespaces", undefined, RUN), undefined);
  });

  it("a namespace whose creation takes effect after the Ctrl-C is removed, too", async (t) => {
    const { store, run, admitCaller } = await openInstallation(t);
    const caller = admitCaller();
    const removed = removePlace(caller, { run: RUN, namespace: RUN, isOwn: true });
    await run(800);
    store.create("namespaces", buildNamespace(RUN, RUN, caller.clock.now()));
    await run(10_000);
    assert.equal(await removed, true);
    assert.equal(store.get("namespaces", undefined, RUN), undefined);
  });
});
