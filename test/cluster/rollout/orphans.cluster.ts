/**
 * A StatefulSet is deleted without its pods in the middle of its rollout, with and without a budget: its pods count as
 * a zone until it is created again (§1.15, §5.13).
 */
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { evictPatiently } from "../stage/evict.ts";
import { createBudget, serveWebhooks } from "../stage/eviction-stage.ts";
import { assertNoViolations, deletions } from "../stage/invariants.ts";
import { scenario, type Stage } from "../stage/stage.ts";
import { until } from "../stage/until.ts";
import { buildZone } from "../stage/zones.ts";

const UNREADY = { "sim/ready": "false" };
/** For which pods of the next zone would have been deleted. */
const WATCHED_MS = 8000;

/** Zones b and c get a template, and zone b loses its StatefulSet while its first pod is not ready. */
async function orphanAmid(stage: Stage) {
  const { namespace, timeline, create, start, setImage, call } = stage;
  const group = `orphans-${namespace}`;
  const zones = ["zone-a", "zone-b", "zone-c"].map((name) => ({ group, name, replicas: 2 }));
  const [, b = assert.fail(), c = assert.fail()] = zones;
  await create(zones);
  await setImage("app:2", [b], UNREADY);
  await setImage("app:2", [c]);
  const reconciler = start();
  const isDown = (): boolean => timeline.entries.findLast((entry) => entry.pod === "zone-b-0")?.state === "notReady";
  await timeline.until("zone-b-0 has its new template, and is not ready", isDown);
  const sets = `/apis/apps/v1/namespaces/${namespace}/statefulsets`;
  await call("DELETE", `${sets}/zone-b?propagationPolicy=Orphan`);
  await until("zone b is held", async () => reconciler.output().includes("StatefulSet zone-b is gone"));
  return {
    group,
    /** Creates the StatefulSet again, with pods that become ready. */
    async recreate() {
      await call("POST", sets, buildZone({ ...b, image: "app:2" }));
      await stage.done("app:2", [b, c]);
      await timeline.caughtUp();
      assertNoViolations(timeline.entries);
    },
  };
}

const takenOf = ({ timeline }: Stage, zone: string): number =>
  deletions(timeline.entries).filter(({ pod }) => pod.startsWith(zone)).length;

scenario("a zone that is deleted without its pods in its rollout keeps the pods of the next zone", async (stage) => {
  const { recreate } = await orphanAmid(stage);
  await sleep(WATCHED_MS);
  assert.equal(takenOf(stage, "zone-c"), 0);
  await recreate();
});

scenario("evictions beside a zone that is deleted without its pods are judged", async (stage) => {
  await serveWebhooks(stage, 1);
  await createBudget(stage, `orphans-${stage.namespace}`);
  const { recreate } = await orphanAmid(stage);
  for (const pod of ["zone-c-0", "zone-b-1"]) {
    const { code, message } = await evictPatiently(stage, pod);
    assert.equal(code, 429, message);
    assert.match(message, /denied the request: 1 pod not ready in zone-b/);
  }
  await sleep(WATCHED_MS);
  assert.equal(takenOf(stage, "zone-c"), 0);
  await recreate();
});
