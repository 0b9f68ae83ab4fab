import assert from "node:assert/strict";
import { assertNoViolations, deletions, returns } from "../stage/invariants.ts";
import { doneWithHelp } from "../stage/done-with-help.ts";
import { scenario } from "../stage/stage.ts";

const ZONES = ["zone-a", "zone-b", "zone-c"].map((name) => ({ group: "cache", name }));
/** New pods become ready only when the test says so: no deletion can come between two of its steps. */
const UNREADY = { "sim/ready": "false" };
const READY = { "sim/ready": "true" };

scenario(
  "a zone that becomes not ready is updated first, and stops the rollout until it is ready again",
  async (stage) => {
    const { create, start, setImage, annotatePod, timeline } = stage;
    const { entries, until } = timeline;
    const is = (pod: string, state: string): boolean => entries.findLast((entry) => entry.pod === pod)?.state === state;
    await create(ZONES);
    const reconciler = start();
    await setImage("app:2", ZONES, UNREADY);
    await until("the first pod is back, not ready", () => returns(entries).length === 1);
    // The first pod is not ready, so no other deletion can be in progress.
    await annotatePod("zone-b-1", UNREADY);
    await until("zone-b-1 is not ready", () => is("zone-b-1", "notReady"));
    const [first] = deletions(entries);
    await annotatePod(first?.pod ?? "", READY);
    await until("the first pod is ready", () => is(first?.pod ?? "", "ready"));
    await until("zone-b-1 is replaced", () => deletions(entries).length > 1);
    await reconciler.untilOutput(
      /"reason":"MaxUnavailableReached"[^\n]*zone-b|zone-b[^\n]*"reason":"MaxUnavailableReached"/,
    );
    // The reconciler may have got further than the watch.
    await timeline.caughtUp();
    const next = deletions(entries).slice(1);
    assert.deepEqual(
      next.map(({ pod }) => pod),
      ["zone-b-1"],
      "only its own pod is replaced while zone-b has a pod that is not ready",
    );
    await doneWithHelp(stage, "app:2", ZONES);
    assert.equal(await reconciler.end(), 0);
    assertNoViolations(entries);
    assert.equal(deletions(entries).length, 9);
  },
);

scenario(
  "a rollback in the middle of a rollout replaces only the updated pods",
  async ({ create, start, setImage, done, annotatePod, timeline }) => {
    const { entries, until } = timeline;
    const zones = ZONES.map((zone) => ({ ...zone, sim: READY }));
    await create(zones);
    const reconciler = start();
    await setImage("app:2", zones.slice(0, 1));
    for (const zone of zones.slice(1)) await setImage("app:2", [zone], UNREADY);
    await until("the first pod of the second zone is back, not ready", () => returns(entries).length === 4);
    await setImage("app:1", zones);
    // It may be gone already, to be replaced.
    await annotatePod("zone-b-0", READY).catch((error: Error) => assert.equal(error.cause, 404));
    await done("app:1", zones);
    assert.equal(await reconciler.end(), 0);
    assertNoViolations(entries);
    const deleted = deletions(entries).map(({ pod }) => pod);
    assert.deepEqual(deleted.slice(4).toSorted(), deleted.slice(0, 4).toSorted());
  },
);

scenario(
  "a crash-looping zone recovers with a fixed template, and no other zone is disrupted meanwhile",
  async (stage) => {
    const { create, start, setImage, done, timeline } = stage;
    const { entries, until } = timeline;
    await create(ZONES);
    const reconciler = start();
    await setImage("app:2", ZONES, { "sim/crash": "true" });
    await until("the first pod is back", () => returns(entries).length === 1);
    await reconciler.untilOutput(/CrashLoopBackOff/);
    assert.equal(deletions(entries).length, 1, "the first broken pod stops the rollout");
    await setImage("app:3", ZONES, { "sim/crash": "false" });
    await done("app:3", ZONES);
    assert.equal(await reconciler.end(), 0);
    assertNoViolations(entries);
    const [first, second] = deletions(entries);
    assert.equal(second?.pod, first?.pod, "the broken pod is replaced first");
    assert.equal(deletions(entries).length, 10);
  },
);
