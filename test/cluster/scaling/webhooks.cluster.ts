/**
 * Scaling with all features at once: mirrored replicas, a delay, a time between zones, and the
 * prepare-downscale webhook.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { StatefulSet } from "../../../infra/kubernetes/resources.ts";
import { startPodServer } from "../stage/pods.ts";
import { createReplicaTemplate, mirrorOf } from "../stage/replica-template.ts";
import { openWebhookStage } from "../downscale/webhook-stage.ts";
import { until } from "../stage/until.ts";
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
  const { admin, namespace, timeline } = stage;
  const pods = await startPodServer();
  t.after(pods.close);
  const template = await createReplicaTemplate(admin, namespace, "t");
  const annotations = {
    ...mirrorOf("t"),
    "grafana.com/rollout-delayed-downscale": "2s",
    "grafana.com/rollout-prepare-delayed-downscale-url": `http://pod:${pods.port}/prepare-delayed-downscale`,
    "grafana.com/prepare-downscale-http-port": String(stage.pods.port),
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

  const reconciler = stage.reconcile();

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
    [...new Set(stage.pods.requests.filter((call) => call.startsWith("POST")))].toSorted(),
    NAMES.map((name) => `POST ${name}-2`),
  );
  for (const name of NAMES) assert.ok((await stage.get(name)).metadata?.annotations?.["grafana.com/last-downscale"]);
  await until("the replicas are written back to the template's status", async () => {
    const { status } = await admin.call<{ status?: { replicas?: number } }>("GET", template);
    return status?.replicas === 2;
  });
  assert.equal(await reconciler.end(), 0);
});

test("an autoscaler's PUT of /scale with a resourceVersion succeeds at once, min-time then holds the other zone, and the annotation follows", async (t) => {
  const stage = await openWebhookStage(t);
  const { admin, namespace, timeline } = stage;
  const sets = `/apis/apps/v1/namespaces/${namespace}/statefulsets`;
  const annotations = {
    "grafana.com/prepare-downscale-http-port": String(stage.pods.port),
    "grafana.com/prepare-downscale-http-path": "prepare-downscale",
  };
  const labels = { "grafana.com/prepare-downscale": "true", "grafana.com/min-time-between-zones-downscale": "12h" };
  const zones = ["zone-a", "zone-b"];
  for (const name of zones) await admin.call("POST", sets, buildZone({ group: "ingester", name, annotations, labels }));
  const isReady = (name: string, replicas: number): boolean => {
    const { metadata, spec, status } = timeline.statefulSets.get(name) ?? {};
    const counts = [spec?.replicas, status?.replicas, status?.readyReplicas, status?.updatedReplicas];
    const isRecorded = status?.currentRevision === status?.updateRevision;
    return (
      isRecorded && status?.observedGeneration === metadata?.generation && counts.every((count) => count === replicas)
    );
  };
  await timeline.until("all ready", () => zones.every((name) => isReady(name, 3)));

  /** Scales as the HorizontalPodAutoscaler does: GET, then PUT the result with other replicas. */
  const put = async (name: string, replicas: number): Promise<unknown> => {
    const scale = await admin.call<{ metadata: { resourceVersion: string }; spec: object }>(
      "GET",
      `${sets}/${name}/scale`,
    );
    assert.ok(scale.metadata.resourceVersion);
    return await admin.call("PUT", `${sets}/${name}/scale`, { ...scale, spec: { replicas } });
  };
  const held = /zone-a was downscaled at .* and is labelled to wait 12h0m0s/;
  await put("zone-a", 2);
  assert.deepEqual(stage.pods.requests, ["POST zone-a-2"]);
  await timeline.until("zone-a has 2 pods", () => isReady("zone-a", 2));
  await assert.rejects(put("zone-b", 2), held);

  const reconciler = stage.reconcile();
  const last = (name: string): string | undefined =>
    timeline.statefulSets.get(name)?.metadata?.annotations?.["grafana.com/last-downscale"];
  await timeline.until("the annotation follows", () => last("zone-a") !== undefined);
  // While the reconciler records a downscale it holds the group's Lease, and the webhook refuses any other one.
  const busy = /zone-a is already in process of updating replicas/;
  const refused = { message: "" };
  await until("zone-b waits for the time between zones", async () => {
    await assert.rejects(put("zone-b", 2), (error: Error) => {
      refused.message = error.message;
      return true;
    });
    return !busy.test(refused.message);
  });
  assert.match(refused.message, held);

  // A downscale that is admitted, but conflicts with a change during the preparation of its pod, never
  // happens.
  stage.pods.requests.length = 0;
  stage.pods.respond = async (method) => {
    if (method === "POST") await admin.call("PATCH", `${sets}/zone-a`, { spec: { minReadySeconds: 1 } });
    return 200;
  };
  await assert.rejects(put("zone-a", 1), /409/);
  assert.equal(stage.pods.requests[0], "POST zone-a-1");
  await until("the preparation is cancelled", () => stage.pods.requests.includes("DELETE zone-a-1"));
  // A DELETE whose answer was late is sent again.
  assert.deepEqual([...new Set(stage.pods.requests)], ["POST zone-a-1", "DELETE zone-a-1"], reconciler.output());
  assert.equal(await reconciler.end(), 0);
});
