/** A new image while the zones of a group shrink one after the other, under a budget by partition. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { define } from "../stage/definitions.ts";
import { createReplicaTemplate, mirrorOf } from "../stage/replica-template.ts";
import { buildZone, isDone } from "../stage/zones.ts";
import { recordForTest } from "./downscales.ts";
import { openWebhookStage, startReconcilerOf } from "./webhook-stage.ts";

const IMAGE = "app:2";

test("one zone has shrunk already: the others shrink, and all get the new image, although the budget keeps their last pods", async (t) => {
  const stage = await openWebhookStage(t);
  const { admin, namespace } = stage;
  const { timeline, downscales } = await recordForTest(t, stage);
  await define(admin, "zoneawarepoddisruptionbudgets");
  const budgets = `/apis/rollout-operator.grafana.com/v1/namespaces/${namespace}/zoneawarepoddisruptionbudgets`;
  await admin.call("POST", budgets, {
    apiVersion: "rollout-operator.grafana.com/v1",
    kind: "ZoneAwarePodDisruptionBudget",
    metadata: { name: "ingester" },
    spec: {
      maxUnavailable: 1,
      podNamePartitionRegex: "zone-[a-z]-([0-9]+)",
      selector: { matchLabels: { "rollout-group": "ingester" } },
    },
  });
  const template = await createReplicaTemplate(admin, namespace, "t");
  await admin.call("PATCH", `${template}/scale`, { spec: { replicas: 2 } });
  const annotations = {
    ...mirrorOf("t"),
    "grafana.com/prepare-downscale-http-port": String(stage.podPort),
    "grafana.com/prepare-downscale-http-path": "prepare-downscale",
  };
  const labels = { "grafana.com/prepare-downscale": "true" };
  const sets = `/apis/apps/v1/namespaces/${namespace}/statefulsets`;
  const sizes = { "zone-a": 2, "zone-b": 3, "zone-c": 3 };
  const names = Object.keys(sizes);
  for (const [name, replicas] of Object.entries(sizes))
    await admin.call("POST", sets, buildZone({ group: "ingester", name, replicas, annotations, labels }));
  const have = (isSo: (name: string) => boolean) => (): boolean => names.every(isSo);
  const readyOf = (name: string): number => timeline.statefulSets.get(name)?.status?.readyReplicas ?? 0;
  await timeline.until(
    "all ready",
    have((name) => readyOf(name) === sizes[name as keyof typeof sizes]),
  );
  const spec = { template: { spec: { containers: [{ name: "app", image: IMAGE }] } } };
  for (const name of names) await admin.call("PATCH", `${sets}/${name}`, { spec });

  const reconciler = await startReconcilerOf(t, stage);
  await timeline.until(
    "all have shrunk, and the new image",
    have((name) => {
      const set = timeline.statefulSets.get(name);
      return set?.spec?.replicas === 2 && isDone(set, IMAGE);
    }),
  );
  assert.deepEqual(downscales.order(), ["zone-b", "zone-c"]);
  assert.deepEqual(downscales.overlaps(), []);
  assert.equal(await reconciler.end(), 0);
});
