import assert from "node:assert/strict";
import { assertNoViolations, deletions, returns } from "../stage/invariants.ts";
import { scenario } from "../stage/stage.ts";

const ZONES = ["zone-a", "zone-b", "zone-c"].map((name) => ({ group: "cache", name }));

scenario(
  "a zone that becomes not ready stops the rollout until it is ready again",
  async ({ create, start, setImage, done, annotatePod, timeline }) => {
    const { entries, until } = timeline;
    const is = (pod: string, state: string): boolean => entries.findLast((entry) => entry.pod === pod)?.state === state;
    await create(ZONES);
    const reconciler = start();
    await setImage("app:2", ZONES);
    await until("the first pod is terminating", () => deletions(entries).length === 1);
    // The deleted pod is not ready again yet, so no other deletion can be in progress.
    await annotatePod("zone-b-1", { "sim/ready": "false" });
    await until("zone-b-1 is not ready", () => is("zone-b-1", "notReady"));
    const [first] = deletions(entries);
    await until("the first pod is back", () => is(first?.pod ?? "", "ready"));
    await reconciler.untilOutput(/"reason":"MaxUnavailableReached"[^\n]*zone-b|zone-b[^\n]*"reason":"MaxUnavailableReached"/);
    assert.equal(deletions(entries).length, 1, "nothing is deleted while zone-b has a pod that is not ready");
    await annotatePod("zone-b-1", { "sim/ready": null });
    await done("app:2", ZONES);
    assert.equal(await reconciler.end(), 0);
    assertNoViolations(entries);
    assert.equal(deletions(entries).length, 9);
  },
);

scenario("a rollback in the middle of a rollout replaces only the updated pods", async ({ create, start, setImage, done, timeline }) => {
  const { entries, until } = timeline;
  await create(ZONES);
  const reconciler = start();
  await setImage("app:2", ZONES);
  await until("the first pod of the second zone is back", () => returns(entries).length === 4);
  await setImage("app:1", ZONES);
  await done("app:1", ZONES);
  assert.equal(await reconciler.end(), 0);
  assertNoViolations(entries);
  const deleted = deletions(entries).map(({ pod }) => pod);
  assert.deepEqual(deleted.slice(4).toSorted(), deleted.slice(0, 4).toSorted());
});

scenario("a crash-looping zone recovers with a fixed template, and no other zone is disrupted meanwhile", async (stage) => {
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
});
