/** Another's admission puts the replicas of a zone back without a word. */
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { createManifest, deleteManifest } from "../stage/manifests.ts";
import { scenario } from "../stage/stage.ts";
import { until } from "../stage/until.ts";

const POLICY = { apiVersion: "admissionregistration.k8s.io/v1", kind: "MutatingAdmissionPolicy" };

/** Gives zone-b the replicas back that it had. */
function pinning(namespace: string) {
  const name = `pin-${namespace}`;
  const resourceRules = [
    { apiGroups: ["apps"], apiVersions: ["v1"], operations: ["UPDATE"], resources: ["statefulsets"] },
  ];
  return [
    {
      ...POLICY,
      metadata: { name },
      spec: {
        failurePolicy: "Fail",
        reinvocationPolicy: "Never",
        matchConstraints: { resourceRules },
        matchConditions: [
          { name: "zone-b", expression: `request.namespace == "${namespace}" && request.name == "zone-b"` },
        ],
        mutations: [
          {
            patchType: "ApplyConfiguration",
            applyConfiguration: { expression: "Object{spec: Object.spec{replicas: oldObject.spec.replicas}}" },
          },
        ],
      },
    },
    { ...POLICY, kind: `${POLICY.kind}Binding`, metadata: { name }, spec: { policyName: name } },
  ];
}

scenario("a zone whose replicas something pins is left alone for half a minute, and then shrinks", async (stage) => {
  const { namespace, admin, timeline, patchZone } = stage;
  const labels = { "grafana.com/min-time-between-zones-downscale": "1s" };
  const annotations = { "grafana.com/rollout-downscale-leader": "zone-a" };
  await stage.create([
    { group: "ingester", name: "zone-a", labels },
    { group: "ingester", name: "zone-b", labels, annotations },
  ]);
  const replicasOf = (zone: string): number | undefined => timeline.statefulSets.get(zone)?.spec?.replicas;
  const policies = pinning(namespace);
  for (const policy of policies) await createManifest(admin, policy);
  try {
    // The API server takes a policy into account a moment after it has stored it.
    await until("the policy pins zone-b", async () => {
      await patchZone("zone-b", { spec: { replicas: 2 } });
      const isPinned = replicasOf("zone-b") === 3;
      if (!isPinned) await patchZone("zone-b", { spec: { replicas: 3 } });
      return isPinned;
    });
    await patchZone("zone-a", { spec: { replicas: 2 } });
    const reconciler = stage.start({ RECONCILE_INTERVAL: "1s" });
    await until("the refusal is told", async () => (await stage.events("ScaleRefused")).length > 0);
    const versions = new Set<string | undefined>();
    for (let i = 0; i < 100; i++) {
      versions.add(timeline.statefulSets.get("zone-b")?.metadata?.resourceVersion);
      await sleep(100);
    }
    stage.diagnostic(`zone-b had ${versions.size} versions in 10 s`);
    assert.ok(versions.size <= 3, `zone-b was written again and again: ${versions.size} versions in 10 s`);
    for (const policy of policies) await deleteManifest(admin, policy);
    await timeline.until("zone-b follows its leader", () => replicasOf("zone-b") === 2);
    assert.equal(await reconciler.end(), 0);
  } finally {
    for (const policy of policies) await deleteManifest(admin, policy).catch(() => {});
  }
});
