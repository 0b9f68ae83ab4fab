/** Everything at once: zones that mirror a template, a delay, a time between zones, and the prepare-downscale webhook in front of it all. */
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { test } from "node:test";
import { applyRbac, buildKubeconfig } from "./access.ts";
import { playPods } from "./pods.ts";
import { startReconciler } from "./reconciler.ts";
import { createReplicaTemplate } from "./replica-template.ts";
import { recordTimeline } from "./timeline.ts";
import { openWebhookStage } from "./webhook-stage.ts";
import { buildZone } from "./zones.ts";

const NAMES = ["zone-a", "zone-b", "zone-c"];
const BETWEEN_MS = 3000;

test("a mirrored downscale goes through the delay, the time between zones and the prepare-downscale webhook, zone after zone", async (t) => {
  const stage = await openWebhookStage(t);
  const { admin, namespace } = stage;
  const pods = await playPods();
  const timeline = await recordTimeline(admin, namespace);
  t.after(() => {
    pods.close();
    timeline.stop();
  });
  const template = await createReplicaTemplate(admin, namespace, "t");
  const annotations = {
    "grafana.com/rollout-mirror-replicas-from-resource-name": "t",
    "grafana.com/rollout-mirror-replicas-from-resource-kind": "ReplicaTemplate",
    "grafana.com/rollout-mirror-replicas-from-resource-api-version": "rollout-operator.grafana.com/v1",
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

  await applyRbac(admin, namespace);
  const kubeconfig = `${process.env["TMPDIR"] ?? "/tmp"}/${namespace}-kubeconfig`;
  await writeFile(kubeconfig, JSON.stringify(await buildKubeconfig(admin, namespace)), { mode: 0o600 });
  const reconciler = startReconciler({
    PATH: process.env["PATH"] ?? "",
    KUBERNETES_NAMESPACE: namespace,
    KUBECONFIG: kubeconfig,
    RECONCILE_INTERVAL: "500ms",
    RECONCILE_TIME_BUDGET: "10m",
    ...pods.env,
  });
  t.after(() => reconciler.kill());

  const shrunkAt = new Map<string, number>();
  await admin.call("PATCH", `${template}/scale`, { spec: { replicas: 2 } });
  await timeline.until(
    "all shrunk",
    () => {
      for (const name of NAMES) {
        if (timeline.statefulSets.get(name)?.spec?.replicas === 2 && !shrunkAt.has(name)) shrunkAt.set(name, Date.now());
      }
      return ready(2)();
    },
    40_000,
  );
  assert.deepEqual([...shrunkAt.keys()], NAMES);
  const times = [...shrunkAt.values()];
  // Times between zones are kept in whole seconds.
  for (const [i, at] of times.slice(1).entries()) assert.ok(at - (times[i] ?? 0) >= BETWEEN_MS - 1000, times.join(", "));
  assert.deepEqual(
    [...pods.everPrepared].toSorted(),
    NAMES.map((name) => `${name}-2`),
  );
  assert.deepEqual(
    [...new Set(stage.seen)].toSorted(),
    NAMES.map((name) => `POST ${name}-2`),
  );
  for (const name of NAMES) assert.ok((await stage.get(name)).metadata?.annotations?.["grafana.com/last-downscale"]);
  assert.equal(await reconciler.end(), 0);
});
