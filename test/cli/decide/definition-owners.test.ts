/** `zonewise doctor`: whose removal would delete the definitions (docs/migration.md). */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { examineDefinitionOwners } from "../../../cli/decide/definition-owners.ts";

const NAME = "zoneawarepoddisruptionbudgets.rollout-operator.grafana.com";
const OURS = { "helm.sh/resource-policy": "keep", "kubectl.kubernetes.io/last-applied-configuration": "{}" };

interface Row {
  readonly name: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly says?: RegExp;
}

const ROWS: readonly Row[] = [
  { name: "nothing of a definition that was applied from Zonewise's manifests", annotations: OURS },
  { name: "nothing of one that Helm created from a chart's crds/" },
  {
    name: "a Helm release of the original, also after an apply of ours",
    labels: { "app.kubernetes.io/managed-by": "Helm" },
    annotations: { ...OURS, "meta.helm.sh/release-name": "mimir", "meta.helm.sh/release-namespace": "metrics" },
    says: /Helm release metrics\/mimir: its removal deletes it, and with it every object of this kind/,
  },
  {
    name: "an application of Argo CD",
    annotations: {
      "argocd.argoproj.io/tracking-id": `operator:apiextensions.k8s.io/CustomResourceDefinition:/${NAME}`,
    },
    says: /Argo CD application operator: it prunes it/,
  },
  {
    name: "a Kustomization of Flux",
    labels: { "kustomize.toolkit.fluxcd.io/name": "apps", "kustomize.toolkit.fluxcd.io/namespace": "flux-system" },
    says: /Flux object flux-system\/apps: it prunes it/,
  },
  {
    name: "the original's own manifests",
    annotations: { "controller-gen.kubebuilder.io/version": "v0.16.5" },
    says: /the original's manifests, which were applied: kubectl delete -f/,
  },
  {
    name: "nothing of Zonewise's own application",
    annotations: { "argocd.argoproj.io/tracking-id": "zonewise-crds:x" },
  },
];

describe("zonewise doctor warns of", () => {
  for (const { name, labels = {}, annotations = {}, says } of ROWS)
    it(name, () => {
      const findings = examineDefinitionOwners([
        { metadata: { name: NAME, labels: { ...labels }, annotations: { ...annotations } } },
      ]);
      assert.equal(findings.length, says ? 1 : 0);
      if (!says) return;
      assert.deepEqual(
        [findings[0]?.level, findings[0]?.check, findings[0]?.object],
        ["warning", "definition-owner", `customresourcedefinition/${NAME}`],
      );
      assert.match(findings[0]?.message ?? "", says);
    });
});
