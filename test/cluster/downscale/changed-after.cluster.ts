/** Another mutating webhook changes the replicas of a downscale after prepare-downscale has prepared it. */
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { certify } from "../../certify.ts";
import { remove } from "../stage/client.ts";
import { startWebhook } from "../stage/refusing-webhook.ts";
import { createZone, untilReady } from "./scale-methods.ts";
import { openWebhookStage, type WebhookStage } from "./webhook-stage.ts";
import { until } from "../stage/until.ts";

/** Makes each downscale to `asked` replicas one to `stored`; its name comes after that of prepare-downscale. */
async function changeReplicas(
  t: TestContext,
  { admin, namespace }: WebhookStage,
  { asked, stored }: { readonly asked: number; readonly stored: number },
): Promise<void> {
  const pair = await certify("localhost");
  const patch = Buffer.from(JSON.stringify([{ op: "replace", path: "/spec/replicas", value: stored }]));
  const webhook = await startWebhook({ cert: pair.certPem, key: pair.keyPem }, async () => ({
    allowed: true,
    patchType: "JSONPatch",
    patch: patch.toString("base64"),
  }));
  const configurations = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
  const name = `zz-${namespace}`;
  const caBundle = Buffer.from(pair.caPem).toString("base64");
  const resources = ["statefulsets", "statefulsets/scale"];
  await admin.call("POST", configurations, {
    metadata: { name },
    webhooks: [
      {
        name: "zz.example.com",
        admissionReviewVersions: ["v1"],
        sideEffects: "None",
        clientConfig: { url: `https://localhost:${webhook.port}/`, caBundle },
        namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": namespace } },
        rules: [{ operations: ["UPDATE"], apiGroups: ["apps"], apiVersions: ["v1"], resources }],
        matchConditions: [{ name: "asked", expression: `object.spec.replicas == ${asked}` }],
      },
    ],
  });
  t.after(async () => {
    await remove(admin, `${configurations}/${name}`);
    webhook.close();
  });
}

for (const [what, asked, stored] of [
  ["larger", 2, 1],
  ["smaller", 1, 2],
] as const)
  test(`a downscale that another webhook makes ${what} is prepared as it is stored, and the pods that stay are told so`, async (t) => {
    const stage = await openWebhookStage(t, { USE_ZONE_TRACKER: "true" });
    const labels = { "grafana.com/prepare-downscale": "true" };
    await createZone(stage, "zone-a", labels, "ingester");
    await changeReplicas(t, stage, { asked, stored });
    // The API server takes a new webhook into account a moment after it has stored it.
    await until("the other webhook changes the replicas", async () => {
      stage.pods.requests.length = 0;
      const { code, text } = await stage.kubectl(["scale", "statefulset", "zone-a", `--replicas=${asked}`]);
      assert.equal(code, 0, text);
      const isChanged = (await stage.get("zone-a")).spec?.replicas === stored;
      if (!isChanged) {
        await stage.kubectl(["scale", "statefulset", "zone-a", "--replicas=3"]);
        await untilReady(stage, "zone-a");
      }
      return isChanged;
    });
    assert.deepEqual(new Set(stage.pods.requests), new Set(["POST zone-a-2", "POST zone-a-1"]));
    stage.pods.requests.length = 0;
    stage.reconcile();
    await until("the time of the downscale is written", async () => {
      const { metadata } = await stage.get("zone-a");
      return metadata?.annotations?.["grafana.com/last-downscale"] !== undefined;
    });
    const told = stored > asked ? ["DELETE zone-a-1"] : [];
    await until("the pod that stays is told so", async () => stage.pods.requests.length >= told.length);
    assert.deepEqual(stage.pods.requests, told);
  });
