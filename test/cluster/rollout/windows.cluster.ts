import assert from "node:assert/strict";
import { assertNoViolations, deletions } from "../stage/invariants.ts";
import { scenario } from "../stage/stage.ts";
import { until } from "../stage/until.ts";

const ZONES = ["zone-a", "zone-b"].map((name) => ({ group: "cache", name }));
const [A] = ZONES as [(typeof ZONES)[0]];
const WINDOW = "zonewise.dev/rollout-window";
const FREEZES = "zonewise.dev/rollout-freezes";

const around = (now: number): string =>
  [now - 60_000, now + 3_600_000].map((at) => new Date(at).toISOString()).join("/");

scenario(
  "a frozen group waits with an Event, a broken pod of it is replaced, and it rolls out once the freeze is taken away",
  async ({ create, start, setImage, done, patchZone, annotatePod, events, timeline }) => {
    const { entries } = timeline;
    const annotate = async (annotations: Readonly<Record<string, string | null>>): Promise<void> => {
      for (const { name } of ZONES) await patchZone(name, { metadata: { annotations } });
    };
    await create(ZONES);
    await annotate({ [WINDOW]: "* * * * * *", [FREEZES]: around(Date.now()) });
    const reconciler = start();
    await setImage("app:2", ZONES);
    await reconciler.untilOutput(/"reason":"WindowClosed"/);
    assert.deepEqual(deletions(entries), []);
    await until("the Event is recorded", async () => (await events("WindowClosed")).length > 0);
    const [event] = await events("WindowClosed");
    assert.equal(event?.type, "Normal");
    assert.match(event?.message ?? "", /zone-a waits, and 3 pods have to be updated: a freeze lasts until /);

    await annotatePod("zone-a-1", { "sim/crash": "true" });
    await timeline.until("the broken pod is replaced", () => deletions(entries).length > 0);
    await reconciler.untilOutput(/WindowClosed[^]*replacing pods that serve nothing[^]*"reason":"WindowClosed"/);
    assert.deepEqual(
      deletions(entries).map(({ zone }) => zone),
      [A.name],
    );

    await annotate({ [FREEZES]: null });
    await done("app:2", ZONES);
    assert.equal(await reconciler.end(), 0);
    assertNoViolations(entries);
    assert.equal(deletions(entries).length, 6);
  },
);

scenario(
  "a window that cannot be read holds its zone, and is named by a Warning Event",
  async ({ create, start, setImage, done, patchZone, events, timeline }) => {
    await create(ZONES);
    await patchZone(A.name, { metadata: { annotations: { [WINDOW]: "0 2 * * *" } } });
    const reconciler = start();
    await setImage("app:2", ZONES);
    await reconciler.untilOutput(/"reason":"WindowInvalid"/);
    assert.deepEqual(deletions(timeline.entries), []);
    await until("the Event is recorded", async () => (await events("InvalidAnnotation")).length > 0);
    const [event] = await events("InvalidAnnotation");
    assert.equal(event?.type, "Warning");
    assert.match(event?.message ?? "", /rollout-window is "0 2 \* \* \*": it has 5 fields/);
    await patchZone(A.name, { metadata: { annotations: { [WINDOW]: null } } });
    await done("app:2", ZONES);
    assert.equal(await reconciler.end(), 0);
    assertNoViolations(timeline.entries);
  },
);

scenario(
  "batches grow from one pod as long as pods come up, whichever process goes on",
  async ({ create, start, setImage, done, timeline }) => {
    const annotations = { "rollout-max-unavailable": "4", "zonewise.dev/rollout-accelerate": "true" };
    const zone = { ...A, replicas: 8, annotations };
    await create([zone]);
    await setImage("app:2", [zone]);
    const first = start();
    await timeline.until("the first pods are replaced", () => deletions(timeline.entries).length >= 2);
    await first.kill();
    const second = start();
    await done("app:2", [zone]);
    assert.equal(await second.end(), 0);
    const chosen = new Set(deletions(timeline.entries));
    const [taken, back] = [new Set<string>(), new Set<string>()];
    for (const entry of timeline.entries) {
      if (chosen.has(entry)) {
        taken.add(entry.pod);
        const limit = 2 ** Math.floor(Math.log2(back.size + 1));
        assert.ok(taken.size - back.size <= limit, `${entry.pod} is taken, ${back.size} have come up`);
      } else if (entry.state === "ready" && taken.has(entry.pod)) back.add(entry.pod);
    }
    assert.equal(back.size, 8);
  },
);
