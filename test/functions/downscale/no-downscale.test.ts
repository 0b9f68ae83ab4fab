/** The handler alone; through the API server they are in test/cluster. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { AdmissionRequest } from "../../../functions/http/webhook.ts";
import { createNoDownscale } from "../../../functions/downscale/no-downscale.ts";
import type { StatefulSet } from "../../../infra/kubernetes/resources.ts";
import { keepObjects } from "../../reconciler/kept-objects.ts";
import { callWebhook, reviewOf, scaleReviewOf, type Stage } from "../stage.ts";

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

describe("a review of a scale", () => {
  const free = { ...labelled, metadata: { name: "free", labels: { [LABEL]: "false" } } };
  const { cluster } = keepObjects({
    statefulsets: [labelled, free],
    deployments: [workload("Deployment", 3)],
    replicasets: [workload("ReplicaSet", 3)],
  });
  const of = (resource: string, more: Partial<AdmissionRequest> = {}, group = "apps"): AdmissionRequest =>
    scaleReviewOf(labelled, 2, { resource: { group, version: "v1", resource }, ...more });
  const denied = (resource: string): object => ({ allowed: false, message: DENIED.replace("statefulsets", resource) });
  const warned = (warning: string): object => ({ allowed: true, warnings: [warning] });
  const CASES: readonly [string, AdmissionRequest, object][] = [
    ...["statefulsets", "deployments", "replicasets"].map((resource): [string, AdmissionRequest, object] => [
      `is denied for a parent with the label, of ${resource}`,
      of(resource),
      denied(resource),
    ]),
    ["is denied in a dry run as well", of("statefulsets", { dryRun: true }), denied("statefulsets")],
    [
      "is allowed for a parent without it",
      of("statefulsets", { name: "free" }),
      { allowed: true, reason: "NotLabelled" },
    ],
    ["is allowed to grow", scaleReviewOf(labelled, 4), { allowed: true, reason: "NoDownscale" }],
    [
      "is allowed with a warning if its parent is gone",
      of("statefulsets", { name: "gone" }),
      warned("can't get statefulsets/gone in namespace default, allowing the change: statefulsets gone not found"),
    ],
    [
      "is allowed with a warning if its parent is of another kind",
      of("widgets"),
      warned("can't get widgets/web in namespace default, allowing the change: unsupported resource widgets"),
    ],
    [
      "is allowed with a warning if its parent is of another group",
      of("statefulsets", {}, "example.com"),
      warned("can't get statefulsets/web in namespace default, allowing the change: unsupported resource statefulsets"),
    ],
  ];
  for (const [name, request, expected] of CASES)
    it(name, async () =>
      assert.partialDeepStrictEqual(await callWebhook(createNoDownscale({ cluster }), request), expected),
    );
});
