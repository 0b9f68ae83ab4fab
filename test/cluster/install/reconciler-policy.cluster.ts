/**
 * The optional policy for the reconciler's ServiceAccount: which fields its token can change.
 * test/cluster/rollout/charts.cluster.ts has the reconciler work under it.
 */
import assert from "node:assert/strict";
import { writeKubeconfig } from "../stage/access.ts";
import { connectAdmin } from "../stage/client.ts";
import { enforcePolicies } from "../stage/manifests.ts";
import { scenario } from "../stage/stage.ts";
import { until } from "../stage/until.ts";

const OTHER = { containers: [{ name: "app", image: "other:1" }] };

/** What is patched, with what, and whether the policy lets it pass. */
const CASES: readonly (readonly [string, "set" | "pod", object, boolean])[] = [
  ["replicas", "set", { spec: { replicas: 2 } }, true],
  [
    "the time of a downscale",
    "set",
    { metadata: { annotations: { "grafana.com/last-downscale": "2026-01-01T00:00:00Z" } } },
    true,
  ],
  ["no time of a downscale", "set", { metadata: { annotations: { "grafana.com/last-downscale": null } } }, true],
  [
    "the partition",
    "set",
    { spec: { updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: 1 } } } },
    true,
  ],
  [
    "the owner of phases",
    "set",
    { metadata: { annotations: { "sts.plus/phasedRollout": "main", "sts.plus/original-partition": "0" } } },
    true,
  ],
  ["an image", "set", { spec: { template: { spec: OTHER } } }, false],
  ["an image beside the replicas", "set", { spec: { replicas: 2, template: { spec: OTHER } } }, false],
  ["a ServiceAccount", "set", { spec: { template: { spec: { serviceAccountName: "admin" } } } }, false],
  ["an annotation of the template", "set", { spec: { template: { metadata: { annotations: { a: "b" } } } } }, false],
  ["the update strategy", "set", { spec: { updateStrategy: { type: "OnDelete", rollingUpdate: null } } }, false],
  ["minReadySeconds", "set", { spec: { minReadySeconds: 5 } }, false],
  ["the history", "set", { spec: { revisionHistoryLimit: 1 } }, false],
  ["the ordinals", "set", { spec: { ordinals: { start: 1 } } }, false],
  [
    "what becomes of claims",
    "set",
    { spec: { persistentVolumeClaimRetentionPolicy: { whenScaled: "Delete" } } },
    false,
  ],
  ["a label", "set", { metadata: { labels: { "rollout-group": "other" } } }, false],
  ["another annotation", "set", { metadata: { annotations: { "grafana.com/rollout-paused": "true" } } }, false],
  ["a promoted phase", "set", { metadata: { annotations: { "sts.plus/promote-step": "1" } } }, false],
  ["one annotation less", "set", { metadata: { annotations: { mine: null } } }, false],
  ["a finalizer", "set", { metadata: { finalizers: ["example.com/stay"] } }, false],
  [
    "an owner",
    "set",
    { metadata: { ownerReferences: [{ apiVersion: "v1", kind: "Pod", name: "x", uid: "1" }] } },
    false,
  ],
];

scenario("under its policy, the reconciler's token changes replicas and times, and nothing else", async (stage) => {
  const { namespace, admin } = stage;
  await enforcePolicies(stage, { folder: "infra/manifests/reconciler-policy" });
  await stage.create([
    { group: "cache", name: "zone-a", replicas: 1, strategy: { type: "RollingUpdate" }, annotations: { mine: "1" } },
  ]);
  const reconciler = await connectAdmin(await writeKubeconfig(stage));
  stage.defer(reconciler.close);
  const paths = {
    set: `/apis/apps/v1/namespaces/${namespace}/statefulsets/zone-a?dryRun=All`,
    pod: `/api/v1/namespaces/${namespace}/pods/zone-a-0?dryRun=All`,
  };
  const patch = (by: typeof admin, target: keyof typeof paths, body: object): Promise<string> =>
    by.call("PATCH", paths[target], body).then(() => "taken", String);
  const refusal = /403.*the reconciler changes nothing of a/;
  // The API server takes a policy into account a moment after it has stored it.
  for (const [what, target, body, passes] of CASES)
    if (!passes) await until(`${what} is refused`, async () => (await patch(reconciler, target, body)) !== "taken");
  for (const [what, target, body, passes] of CASES) {
    const answer = await patch(reconciler, target, body);
    assert.match(answer, passes ? /^taken$/ : refusal, what);
    assert.doesNotMatch(await patch(admin, target, body), refusal, `${what}, by another user`);
  }
  const annotated = { metadata: { annotations: { "grafana.com/ready-time": "2026-01-01T00:00:00Z" } } };
  assert.match(await patch(reconciler, "pod", annotated), /403.*cannot patch resource \\"pods/);
});
