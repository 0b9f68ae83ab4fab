/** `zonewise doctor`: what an installation lacks, and whose removal would delete the definitions (docs/migrate/rollout-operator.md). */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Finding } from "../../../../cli/decide/doctor/facts.ts";
import { diagnose } from "../../../../cli/decide/doctor/checks.ts";
import type { WebhookConfiguration } from "../../../../infra/kubernetes/resources.ts";
import type { Guard } from "../../../../reconciler/budget/guard.ts";

const NAME = "zoneawarepoddisruptionbudgets.rollout-operator.grafana.com";
const OURS = { "helm.sh/resource-policy": "keep", "kubectl.kubernetes.io/last-applied-configuration": "{}" };

/** What a definition has as labels or annotations. */
const ROWS: readonly (readonly [name: string, marks: Readonly<Record<string, string>>])[] = [
  ["nothing of a definition that was applied from Zonewise's manifests", OURS],
  ["nothing of one that Helm created from a chart's crds/", {}],
  ["a Helm release of the original, also after an apply of ours", { ...OURS, "meta.helm.sh/release-name": "mimir" }],
  ["an application of Argo CD", { "argocd.argoproj.io/tracking-id": `operator:x:/${NAME}` }],
  ["a Kustomization of Flux", { "kustomize.toolkit.fluxcd.io/name": "apps" }],
  ["the original's own manifests", { "controller-gen.kubebuilder.io/version": "v0.16.5" }],
  ["nothing of Zonewise's own application", { "argocd.argoproj.io/tracking-id": "zonewise-crds:x" }],
];

describe("zonewise doctor warns of", () => {
  for (const [name, marks] of ROWS)
    for (const place of ["labels", "annotations"])
      it(`${name}, by its ${place}`, () => {
        const findings = diagnose({ definitions: [{ metadata: { name: NAME, [place]: marks } }] });
        assert.deepEqual(
          summaryOf(findings),
          name.startsWith("nothing") ? [] : [`warning definition-owner customresourcedefinition/${NAME}`],
        );
      });
});

const summaryOf = (findings: readonly Finding[]): string[] =>
  findings.map(({ level, check, object }) => `${level} ${check} ${object}`);

describe("zonewise doctor", () => {
  it("finds an eviction webhook that fails open", () => {
    const hook = (failurePolicy: string, path: string) =>
      ({
        metadata: { name: "evictions" },
        webhooks: [{ name: "w", failurePolicy, clientConfig: { caBundle: "Cg==", service: { name: "s", path } } }],
      }) as unknown as WebhookConfiguration;
    const found = diagnose({
      webhooks: [
        hook("Ignore", "/admission/mutate-pod-eviction"),
        hook("Fail", "/admission/mutate-pod-eviction"),
        hook("Ignore", "/admission/zpdb-validation"),
      ],
    });
    assert.deepEqual(summaryOf(found), ["warning webhook-fails-open webhookconfiguration/evictions"]);
    assert.match(
      found[0]?.fix ?? "",
      /kubectl patch mutatingwebhookconfiguration evictions -p '\{"webhooks":\[\{"name":"w","failurePolicy":"Fail"\}\]\}'$/,
    );
  });

  it("finds a webhook of ours without a CA, and leaves others alone", () => {
    const hook = (name: string, caBundle?: string) =>
      ({
        metadata: { name },
        webhooks: [{ name: "w", clientConfig: { service: { name: "s" }, ...(caBundle && { caBundle }) } }],
      }) as unknown as WebhookConfiguration;
    const found = diagnose({
      webhooks: [hook("pod-eviction-zonewise"), hook("no-downscale-zonewise", "Cg=="), hook("other")],
    });
    assert.deepEqual(summaryOf(found), ["error webhook-without-ca webhookconfiguration/pod-eviction-zonewise"]);
  });
});

it("calls what is known to be wrong an error, and what could not be seen a warning", () => {
  const said = { message: "m", remedy: "r" };
  const reasons: readonly Guard["reason"][] = ["Guarded", "NoWebhook", "WebhookDown", "NotSeen"];
  const guards = reasons.map((reason) => ({ budget: "db", guard: { reason, ...said } }));
  assert.deepEqual(summaryOf(diagnose({ guards })), [
    "error not-guarded zpdb/db",
    "error not-guarded zpdb/db",
    "warning not-checked zpdb/db",
  ]);
  const ticks = (["stopped", "unknown"] as const).map((state) => ({ state, reason: "NotKnown", ...said }) as const);
  assert.deepEqual(summaryOf(diagnose({ noTicks: ticks })), [
    "error no-tick reconciler",
    "warning not-checked reconciler",
  ]);
});
