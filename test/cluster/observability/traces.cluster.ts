/** A reconciler whose environment names a collector, during a rollout. */
import assert from "node:assert/strict";
import { startCollector } from "../../infra/tracing/collector.ts";
import { scenario } from "../stage/stage.ts";

scenario("spans of ticks, groups, decisions and calls reach the collector", async (stage) => {
  const { create, start, setImage, done } = stage;
  const collector = await startCollector({ after: (close) => stage.defer(close as () => unknown) });
  const zones = ["zone-a", "zone-b"].map((name) => ({ group: "cache", name, replicas: 1 }));
  await create(zones);
  const reconciler = start({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_BSP_SCHEDULE_DELAY: "200" });
  await setImage("app:2", zones);
  await done("app:2", zones);
  assert.equal(await reconciler.end(), 0);

  const { spans } = collector;
  const byId = new Map(spans.map((span) => [span.id, span]));
  const decided = spans.filter(({ name }) => name === "decide");
  const actions = new Set(decided.map(({ attributes }) => attributes["zonewise.action"]));
  assert.ok(actions.has("deletePods") && actions.has("finishZone"), [...actions].join());
  for (const { parent } of decided) {
    const group = byId.get(parent);
    assert.deepEqual([group?.name, group?.attributes["zonewise.group"]], ["group", "cache"]);
    assert.equal(byId.get(group?.parent ?? "")?.name, "tick");
  }
  const deleted = spans.filter(({ name }) => name === "DELETE core/v1/pods object");
  assert.ok(deleted.length >= 2, `${deleted.length} deletions`);
  for (const { attributes, resource } of deleted) {
    assert.equal(attributes["http.response.status_code"], 200);
    assert.equal(resource["service.name"], "zonewise-reconciler");
  }
});
