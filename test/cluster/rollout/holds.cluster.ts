import assert from "node:assert/strict";
import { assertNoViolations, deletions } from "../stage/invariants.ts";
import { scenario } from "../stage/stage.ts";

const ZONES = ["zone-a", "zone-b", "zone-c"].map((name) => ({ group: "cache", name }));
const [A, B, C] = ZONES as [(typeof ZONES)[0], (typeof ZONES)[0], (typeof ZONES)[0]];

scenario(
  "a paused zone keeps its pods while the others roll out, and rolls out once it is resumed",
  async ({ create, start, setImage, done, patchZone, timeline }) => {
    const { entries } = timeline;
    const pause = (value: string | null): Promise<void> =>
      patchZone(B.name, { metadata: { annotations: { "grafana.com/rollout-paused": value } } });
    await create(ZONES);
    await pause("true");
    const reconciler = start();
    await setImage("app:2", ZONES);
    await done("app:2", [A, C]);
    await reconciler.untilOutput(/"reason":"ZonePaused"/);
    assert.equal(
      deletions(entries).some(({ zone }) => zone === B.name),
      false,
    );
    await pause(null);
    await done("app:2", ZONES);
    assert.equal(await reconciler.end(), 0);
    assertNoViolations(entries);
    assert.equal(deletions(entries).length, 9);
  },
);

scenario(
  "a group with a RollingUpdate zone is not rolled out: a Warning Event, and exit code 1",
  async ({ create, start, setImage, events, timeline }) => {
    // With a partition equal to the replicas, the StatefulSet controller replaces no pod.
    const strategy = { type: "RollingUpdate", rollingUpdate: { partition: 3 } };
    const zones = [A, B, { ...C, strategy }];
    await create(zones);
    await setImage("app:2", zones);
    const reconciler = start();
    await reconciler.untilOutput(/UpdateStrategyNotOnDelete[^]*"msg":"tick"/);
    assert.equal(await reconciler.end(), 1, reconciler.output());
    assert.deepEqual(deletions(timeline.entries), []);
    const [event, ...others] = await events("UpdateStrategyNotOnDelete");
    assert.equal(event?.type, "Warning");
    assert.equal(event?.involvedObject.name, C.name);
    assert.deepEqual(others, []);
  },
);

scenario(
  "a StatefulSet without the rollout-group label is ignored",
  async ({ create, start, setImage, done, timeline }) => {
    const stranger = { group: "", name: "stranger" };
    await create([...ZONES, stranger]);
    const reconciler = start();
    await setImage("app:2", [stranger, ...ZONES]);
    await done("app:2", ZONES);
    assert.equal(await reconciler.end(), 0);
    assert.equal(
      deletions(timeline.entries).some(({ zone }) => zone === stranger.name),
      false,
    );
    await timeline.until(
      "none of its pods is updated",
      () => (timeline.statefulSets.get(stranger.name)?.status?.updatedReplicas ?? 0) === 0,
    );
    assertNoViolations(timeline.entries);
  },
);
