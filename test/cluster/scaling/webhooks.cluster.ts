/**
 * Scaling with all features at once: mirrored replicas, a delay, a time between zones, and the
 * prepare-downscale webhook.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { StatefulSet } from "../../../infra/kubernetes/resources.ts";
import { startPodServer } from "../stage/pods.ts";
import { createReplicaTemplate, mirrorOf } from "../stage/replica-template.ts";
import { recordTimeline } from "../stage/timeline.ts";
import { openWebhookStage, startReconcilerOf } from "../downscale/webhook-stage.ts";
import { buildZone } from "../stage/zones.ts";

const NAMES = ["zone-a", "zone-b", "zone-c"];
const BETWEEN_MS = 5000;

/**
 * When the reconciler wrote it last, by the API server's clock: this machine may be late. Milliseconds since the epoch.
 */
const writtenAt = ({ metadata }: StatefulSet): number =>
  Math.max(
    ...(metadata?.managedFields ?? []).flatMap(({ subresource, time }) =>
      subresource === "status" || !time ? [] : [Date.parse(time)],
    ),
  );

test("a mirrored downscale goes through the delay, the time between zones and the prepare-downscale webhook, zone after zone", async (t) => {
  const stage = await openWebhookStage(t);
  const { admin, namespace } = stage;
  const pods = await startPodServer();
  const timeline = await recordTimeline(admin, namespace);
  t.after(() => {
    pods.close();
    timeline.stop();
  });
  const template = await createReplicaTemplate(admin, namespace, "t");
  const annotations = {
    ...mirrorOf("t"),
    "grafana.com/rollout-delayed-downscale": "2s",
    "grafana.com/rollout-prepare-delayed-downscale-url": `http://pod:${pods.port}/prepare-delayed-downscale`,
    "grafana.com/prepare-downscale-http-port": String(stage.podPort),
    "grafana.com/prepare-downscale-http-path": "prepare-downscale",
  };
  const labels = {
    "grafana.com/prepare-downscale": "true",
    "grafana.com/min-time-between-zones-downscale": `${BETWEEN_MS / 1000}s`,
  };
  for (const name of NAMES) {
    await admin.call(
      "POST",
      `/apis/apps/v1/namespaces/${namespace}/statefulsets`,
      buildZone({ group: "ingester", name, annotations, labels }),
    );
  }
  const ready = (replicas: number) => (): boolean =>
    NAMES.every((name) => {
      const { spec, status } = timeline.statefulSets.get(name) ?? {};
      return spec?.replicas === replicas && status?.readyReplicas === replicas && status.replicas === replicas;
    });
  await timeline.until("all ready", ready(3));

  const reconciler = await startReconcilerOf(t, stage);

  const shrunkAt = new Map<string, number>();
  await admin.call("PATCH", `${template}/scale`, { spec: { replicas: 2 } });
  await timeline.until("all shrunk", () => {
    for (const name of NAMES) {
      const set = timeline.statefulSets.get(name);
      if (set?.spec?.replicas === 2 && !shrunkAt.has(name)) shrunkAt.set(name, writtenAt(set));
    }
    return ready(2)();
  });
  // Their delays end in any order: pods tell the time of their preparation in whole seconds.
  assert.deepEqual([...shrunkAt.keys()].toSorted(), NAMES);
  const times = [...shrunkAt.values()];
  // Times between zones have a resolution of one second, and so have those of the API server.
  for (const [i, at] of times.slice(1).entries())
    assert.ok(at - (times[i] ?? 0) >= BETWEEN_MS - 2000, times.join(", "));
  assert.deepEqual(
    [...pods.everPrepared].toSorted(),
    NAMES.map((name) => `${name}-2`),
  );
  assert.deepEqual(
    // A write that met a conflict is taken back, and tried again.
    [...new Set(stage.podRequests.filter((call) => call.startsWith("POST")))].toSorted(),
    NAMES.map((name) => `POST ${name}-2`),
  );
  for (const name of NAMES) assert.ok((await stage.get(name)).metadata?.annotations?.["grafana.com/last-downscale"]);
  assert.equal(await reconciler.end(), 0);
});
