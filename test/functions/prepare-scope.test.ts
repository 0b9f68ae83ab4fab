/** The pods that prepare-downscale calls, and those that it does not. */
import assert from "node:assert/strict";
import { describe, it, test } from "node:test";
import type { AdmissionRequest } from "../../functions/http/webhook.ts";
import type { StatefulSet } from "../../infra/kubernetes/resources.ts";
import { A, B, MIN_TIME, because, inAnnotation, play, track } from "./prepare-stage.ts";
import { callWebhook, createZone, reviewOf, scaleReviewOf } from "./stage.ts";

describe("the pods that are prepared", () => {
  const HTTP = "grafana.com/prepare-downscale-http";
  const CASES: readonly [string, Parameters<typeof createZone>[2], string | undefined][] = [
    ["not those of a StatefulSet without the label", { labels: { "grafana.com/prepare-downscale": "yes" } }, undefined],
    [
      "not those that no-downscale protects, whatever the other webhook says",
      { labels: { "grafana.com/no-downscale": "true" } },
      "it has the label 'grafana.com/no-downscale=true'",
    ],
    [
      "not without a port",
      { annotations: { [`${HTTP}-port`]: undefined } },
      `the ${HTTP}-port annotation is not set or empty.`,
    ],
    [
      "not without a path",
      { annotations: { [`${HTTP}-path`]: "" } },
      `the ${HTTP}-path annotation is not set or empty.`,
    ],
    [
      "not those of a zone whose group has no name",
      { labels: { "rollout-group": "" } },
      "its label rollout-group is empty: give it the name of its group, or remove it.",
    ],
    ["not without a service", { serviceName: "" }, "the serviceName is not set or empty."],
    ...["x@127.0.0.1:1/admin?", "evil.example/", "a b", "a.b", "A", "-a", "a".repeat(64)].map(
      (serviceName): [string, Parameters<typeof createZone>[2], string] => [
        `not at another host, by way of serviceName ${serviceName}`,
        { serviceName },
        `the serviceName ${JSON.stringify(serviceName)} is not a DNS label.`,
      ],
    ),
    [
      "not at a port that is none",
      { annotations: { [`${HTTP}-port`]: "http" } },
      `the ${HTTP}-port annotation is not a port.`,
    ],
    [
      "not at another host, by way of the port",
      { annotations: { [`${HTTP}-port`]: "x@elsewhere.example:80" } },
      `the ${HTTP}-port annotation is not a port.`,
    ],
  ];
  for (const [name, traits, why] of CASES)
    it(name, async (t) => {
      const stage = await play(t, inAnnotation);
      const answer = await callWebhook(stage.webhook, reviewOf(createZone(stage, A, traits), 1));
      assert.deepEqual([answer.allowed, answer.message], [why === undefined, why && because(A, why)]);
      assert.deepEqual(stage.seen, []);
    });

  it("not those of an object that has changed since it was read: the API server refuses it", async (t) => {
    const stage = await play(t, inAnnotation);
    const review = reviewOf(createZone(stage, A), 1);
    const object = review.object as { metadata: object };
    const answer = await callWebhook(stage.webhook, {
      ...review,
      object: { ...object, metadata: { ...object.metadata, resourceVersion: "1" } },
    });
    assert.deepEqual([answer.allowed, stage.seen], [true, []]);
  });

  for (const version of ["0", "00", "0<stored>"])
    for (const [kind, review] of [
      ["StatefulSet", reviewOf],
      ["Scale", scaleReviewOf],
    ] as const)
      it(`those of a ${kind} with resourceVersion ${version}, which the API server stores`, async (t) => {
        const stage = await play(t, inAnnotation);
        const zone = createZone(stage, A);
        const stored = zone.metadata?.resourceVersion ?? "";
        const { object, oldObject, ...request } = review(zone, 2);
        const at = (one: unknown, resourceVersion: string): object => ({
          ...(one as object),
          metadata: { resourceVersion },
        });
        const old = kind === "Scale" ? at(oldObject, stored) : oldObject;
        const answer = await callWebhook(stage.webhook, {
          ...request,
          oldObject: old,
          object: at(object, version.replace("<stored>", stored)),
        });
        assert.deepEqual([answer.reason, stage.seen], ["Prepared", [`POST ${A}-2`]]);
      });

  it("not in annotation mode either, while the zone tracker of an earlier installation says that another zone was scaled down", async (t) => {
    const stage = await play(t, inAnnotation);
    track(stage, { [B]: Date.now() });
    createZone(stage, B, { labels: { [MIN_TIME]: "12h" } });
    const answer = await callWebhook(stage.webhook, reviewOf(createZone(stage, A), 1));
    assert.match(answer.message ?? "", /statefulset ingester-zone-b was downscaled at .* labelled to wait 12h0m0s/);
  });

  it("not those of Deployments and unknown kinds, which are allowed with a warning", async (t) => {
    const stage = await play(t, inAnnotation);
    const zone = createZone(stage, A);
    const as = (kind: string, resource: string): AdmissionRequest =>
      reviewOf({ ...zone, kind }, 1, { resource: { group: "apps", version: "v1", resource } });
    const warnings: readonly [AdmissionRequest, string][] = [
      [as("Deployment", "deployments"), "unsupported type apps/v1, Kind=Deployment, allowing the change"],
      [
        as("DaemonSet", "daemonsets"),
        "can't decode old object, allowing the change, err: unsupported type apps/v1, Kind=DaemonSet",
      ],
      [
        scaleReviewOf(zone, 1, { resource: { group: "apps", version: "v1", resource: "deployments" } }),
        "unsupported resource deployments, allowing the change",
      ],
    ];
    for (const [request, warning] of warnings)
      assert.partialDeepStrictEqual(await callWebhook(stage.webhook, request), { allowed: true, warnings: [warning] });
    const missing = await callWebhook(stage.webhook, scaleReviewOf(zone, 1, { name: "gone" }));
    assert.match(missing.warnings?.[0] ?? "", /"gone" not found.*, allowing the change$/);
  });
});

describe("other ordinals (spec.ordinals.start)", () => {
  const LABEL = "grafana.com/prepare-downscale";
  const CASES: readonly [
    string,
    readonly [start: number, replicas: number],
    readonly [start: number, replicas: number],
    object,
    boolean,
  ][] = [
    ["that begin higher take the first pod, which nobody prepares", [0, 3], [1, 3], {}, false],
    ["even if the last pod stays, and its preparation would be for the wrong one", [0, 3], [1, 2], {}, false],
    ["that begin lower take the last pod", [1, 3], [0, 3], {}, false],
    ["that begin lower beside more replicas take no pod", [1, 3], [0, 4], {}, true],
    ["of a StatefulSet without pods take none", [0, 0], [1, 0], {}, true],
    ["of a StatefulSet whose pods are not prepared are its own business", [0, 3], [1, 3], { [LABEL]: "false" }, true],
  ];
  for (const [name, before, after, labels, allowed] of CASES)
    it(`${name}: ${allowed ? "allowed" : "refused"}`, async (t) => {
      const stage = await play(t, inAnnotation);
      const zone = createZone(stage, A, { replicas: before[1], labels: labels as Record<string, string> });
      const at = ([start, replicas]: readonly [number, number]): object => ({
        ...zone,
        spec: { ...zone.spec, replicas, ordinals: { start } },
      });
      const answer = await callWebhook(
        stage.webhook,
        reviewOf(zone, after[1], { oldObject: at(before), object: at(after) }),
      );
      const message =
        `change of spec.ordinals.start of statefulsets/${A} in default from ${before[0]} to ${after[0]} is not allowed because pods would go ` +
        `that are not prepared for shutdown; scale it to 0 or remove the label ${LABEL} first.`;
      assert.deepEqual([answer.allowed, answer.message, stage.seen], [allowed, allowed ? undefined : message, []]);
    });
});

test("a StatefulSet that cannot be read is not scaled down: its pods may need preparation", async (t) => {
  const stage = await play(t, inAnnotation);
  const zone = createZone(stage, A);
  stage.emulator.faults.inject({ verb: "get", resource: "statefulsets.apps", effect: { kind: "error" } });
  assert.equal(
    (await callWebhook(stage.webhook, scaleReviewOf(zone, 1))).message,
    because(A, "finding the statefulset failed."),
  );
  assert.deepEqual(stage.seen, []);
});

test("an error denies a downscale and nothing else", async (t) => {
  const { webhook } = await play(t, inAnnotation);
  const zone = {
    apiVersion: "apps/v1",
    kind: "StatefulSet",
    metadata: { name: A },
    spec: { replicas: 3 },
  } as unknown as StatefulSet;
  const fault = new Error("at /secret/path.ts");
  assert.equal(
    webhook.onFault(fault, reviewOf(zone, 1)).message,
    because(A, "an error occurred while its pods were prepared for shutdown."),
  );
  assert.equal(webhook.onFault(fault, reviewOf(zone, 5)).allowed, true);
});

for (const [group, owners] of [
  ["", [A]],
  ["ingester", undefined],
] as const)
  it(`the Lease of a StatefulSet ${group ? "in a group outlives it" : "without a group is deleted with it"}`, async (t) => {
    const stage = await play(t, inAnnotation);
    const zone = createZone(stage, A, { group });
    assert.equal((await callWebhook(stage.webhook, reviewOf(zone, 1))).allowed, true);
    const [lease] = stage.emulator.store.list("leases.coordination.k8s.io", "default");
    assert.deepEqual(
      lease?.metadata.ownerReferences,
      owners?.map((name) => ({ apiVersion: "apps/v1", kind: "StatefulSet", name, uid: zone.metadata?.uid })),
    );
  });
