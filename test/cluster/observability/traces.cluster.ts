/** X03: a reconciler whose environment names a collector, and one that is asked for its profiles, during a rollout. */
import assert from "node:assert/strict";
import { startCollector } from "../../infra/tracing/collector.ts";
import { scenario } from "../stage/stage.ts";

scenario("X03 spans of ticks, groups, decisions and calls reach the collector", async (stage) => {
  const { create, start, setImage, done } = stage;
  const closers: (() => unknown)[] = [];
  const collector = await startCollector({ after: (close) => void closers.push(close as () => unknown) });
  try {
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
  } finally {
    for (const close of closers) close();
  }
});

interface Profile {
  readonly nodes?: readonly { readonly callFrame: { readonly url: string } }[];
  readonly head?: { readonly callFrame: { readonly functionName: string } };
}

scenario(
  "§8.10 a reconciler answers profiles of processor and heap on its loopback address while it rolls out",
  async (stage) => {
    const { create, start, setImage, done } = stage;
    const zones = ["zone-a", "zone-b"].map((name) => ({ group: "cache", name, replicas: 1 }));
    await create(zones);
    const reconciler = start({ PROFILE_PORT: "0" });
    const listening = /^.*"profiles".*$/m;
    await reconciler.untilOutput(listening);
    const line = listening.exec(reconciler.output())?.[0] ?? "";
    const { address, port } = JSON.parse(line) as { address: string; port: number };
    assert.equal(address, "127.0.0.1", line);
    const take = async (path: string, file: string): Promise<Profile> => {
      const response = await fetch(`http://127.0.0.1:${port}/debug/pprof/${path}?seconds=2`);
      assert.equal(response.status, 200);
      assert.equal(response.headers.get("content-disposition"), `attachment; filename="zonewise-reconciler.${file}"`);
      return (await response.json()) as Profile;
    };

    await setImage("app:2", zones);
    const { nodes = [] } = await take("profile", "cpuprofile");
    const { head } = await take("heap", "heapprofile");
    await done("app:2", zones);
    assert.ok(
      nodes.some(({ callFrame }) => callFrame.url.includes("/reconciler/")),
      "its own functions are in the profile",
    );
    // What was allocated in these seconds may be gone again.
    assert.equal(head?.callFrame.functionName, "(root)");
    assert.equal(await reconciler.end(), 0);
  },
);
