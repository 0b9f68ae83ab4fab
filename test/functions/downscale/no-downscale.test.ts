/** The handler alone; through the API server they are in test/cluster. */
import assert from "node:assert/strict";
import { describe, it, test } from "node:test";
import type { AdmissionRequest, Answer } from "../../../functions/http/webhook.ts";
import { createNoDownscale } from "../../../functions/downscale/no-downscale.ts";
import type { StatefulSet } from "../../../infra/kubernetes/resources.ts";
import { callWebhook, createZone, reviewOf, scaleReviewOf, setStage, type Stage } from "../stage.ts";

const LABEL = "grafana.com/no-downscale";
const workload = (
  kind: string,
  replicas: number | null | undefined,
  labels: Record<string, string> = { [LABEL]: "true" },
): StatefulSet =>
  ({
    apiVersion: "apps/v1",
    kind,
    metadata: { name: "web", namespace: "default", labels },
    spec: { replicas },
  }) as unknown as StatefulSet;
const labelled = workload("StatefulSet", 3);

const DENIED =
  "downscale of statefulsets/web in default from 3 to 2 replicas is not allowed because it has the label 'grafana.com/no-downscale=true'";

/** The webhook with a cluster that must not be called. */
const withoutCluster = createNoDownscale({
  cluster: new Proxy({}, { get: () => assert.fail("the cluster was called") }) as Stage["cluster"],
});

describe("a workload's own review", () => {
  const allowed = { allowed: true };
  const warned = (warning: string | RegExp): object => ({ allowed: true, warnings: [warning] });
  const CASES: readonly [string, AdmissionRequest, object][] = [
    ["is denied its downscale", reviewOf(labelled, 2), { allowed: false, message: DENIED }],
    ["is denied in a dry run as well", reviewOf(labelled, 2, { dryRun: true }), { allowed: false, message: DENIED }],
    ["may scale up", reviewOf(labelled, 4), allowed],
    ["may stay", reviewOf(labelled, 3), allowed],
    ["may scale down without the label", reviewOf(workload("StatefulSet", 3, {}), 2), allowed],
    [
      "may scale down with another value of the label",
      reviewOf(workload("StatefulSet", 3, { [LABEL]: "false" }), 2),
      allowed,
    ],
    [
      "may scale down with another spelling of it",
      reviewOf(workload("StatefulSet", 3, { [LABEL]: "True" }), 2),
      allowed,
    ],
    [
      "is denied though the label goes with the replicas",
      reviewOf(labelled, 2, { object: workload("StatefulSet", 2, {}) }),
      { allowed: false, message: DENIED },
    ],
    [
      "may scale down though the label comes with the replicas",
      reviewOf(workload("StatefulSet", 3, {}), 2, { object: workload("StatefulSet", 2) }),
      allowed,
    ],
    [
      "of a Deployment is denied",
      reviewOf(workload("Deployment", 3), 2, { resource: { group: "apps", version: "v1", resource: "deployments" } }),
      { allowed: false, message: DENIED.replace("statefulsets", "deployments") },
    ],
    [
      "of a ReplicaSet is denied",
      reviewOf(workload("ReplicaSet", 3), 0, { resource: { group: "apps", version: "v1", resource: "replicasets" } }),
      { allowed: false, message: DENIED.replace("statefulsets", "replicasets").replace("to 2", "to 0") },
    ],
    ["without replicas on both sides is allowed", reviewOf(workload("StatefulSet", null), null), allowed],
    [
      "without old replicas is allowed with a warning",
      reviewOf(workload("StatefulSet", undefined), 1),
      warned("old/new replicas is nil, allowing the change"),
    ],
    [
      "without new replicas is allowed with a warning",
      reviewOf(labelled, null),
      warned("old/new replicas is nil, allowing the change"),
    ],
    [
      "without an old object is allowed with a warning",
      reviewOf(labelled, 2, { oldObject: null }),
      warned("can't decode old object, allowing the change, err: it has no apiVersion and kind"),
    ],
    [
      "without a new object is allowed with a warning",
      reviewOf(labelled, 2, { object: undefined }),
      warned("can't decode new object, allowing the change, err: it has no apiVersion and kind"),
    ],
    [
      "of another version is allowed with a warning",
      reviewOf({ ...labelled, apiVersion: "apps/v1beta1" }, 2),
      warned(
        'can\'t decode old object, allowing the change, err: no kind "StatefulSet" is registered for version "apps/v1beta1"',
      ),
    ],
    [
      "of another kind is allowed with a warning",
      reviewOf(workload("DaemonSet", 3), 2),
      warned("can't get old replicas, allowing the change, err: unsupported type apps/v1, Kind=DaemonSet"),
    ],
  ];
  for (const [name, request, expected] of CASES)
    it(name, async () => assert.partialDeepStrictEqual(await callWebhook(withoutCluster, request), expected));
});

test("a Scale is judged by its parent's label", async (t) => {
  const stage = await setStage(t);
  const webhook = createNoDownscale(stage);
  const web = createZone(stage, "web", { labels: { [LABEL]: "true" } });
  createZone(stage, "free", { labels: { [LABEL]: "false" } });
  const kinds = [
    ["deployments", "Deployment"],
    ["replicasets", "ReplicaSet"],
  ];
  for (const [resource = "", kind = ""] of kinds)
    stage.emulator.store.create(
      `${resource}.apps`,
      workload(kind, 3) as unknown as Parameters<typeof stage.emulator.store.create>[1],
    );
  const of = (resource: string, more: Partial<AdmissionRequest> = {}): AdmissionRequest =>
    scaleReviewOf(web, 2, { resource: { group: "apps", version: "v1", resource }, ...more });
  const denied = (resource: string): Partial<Answer> => ({
    allowed: false,
    message: DENIED.replace("statefulsets", resource),
  });

  for (const resource of ["statefulsets", "deployments", "replicasets"])
    assert.partialDeepStrictEqual(await callWebhook(webhook, of(resource)), denied(resource));
  assert.partialDeepStrictEqual(
    await callWebhook(webhook, of("statefulsets", { dryRun: true })),
    denied("statefulsets"),
  );
  assert.deepEqual(await callWebhook(webhook, of("statefulsets", { name: "free" })), {
    allowed: true,
    reason: "NotLabelled",
  });
  assert.deepEqual(await callWebhook(webhook, scaleReviewOf(web, 4)), { allowed: true, reason: "NoDownscale" });

  const missing = await callWebhook(webhook, of("statefulsets", { name: "gone" }));
  assert.equal(missing.allowed, true);
  assert.match(
    missing.warnings?.[0] ?? "",
    /^can't get statefulsets\/gone in namespace default, allowing the change: .*"gone" not found/,
  );
  const strange = await callWebhook(webhook, of("widgets"));
  assert.deepEqual(strange.warnings, [
    "can't get widgets/web in namespace default, allowing the change: unsupported resource widgets",
  ]);
  const foreign = await callWebhook(
    webhook,
    of("statefulsets", { resource: { group: "example.com", version: "v1", resource: "statefulsets" } }),
  );
  assert.equal(foreign.allowed, true);
});
