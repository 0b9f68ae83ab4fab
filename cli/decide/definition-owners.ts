/**
 * Finds the owners whose removal would delete a CustomResourceDefinition, and with it every object of its kind in the
 * cluster. Pure.
 */
import type { Definition } from "../../infra/kubernetes/resources.ts";
import type { Finding } from "./findings.ts";

interface Marks {
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

const NAMED = /zonewise/;

/** The marks of tools on the objects that they may delete one day. */
const OWNERS: readonly ((marks: Marks) => string | undefined)[] = [
  ({ annotations }) => {
    const release = annotations["meta.helm.sh/release-name"];
    return (
      release &&
      `the Helm release ${annotations["meta.helm.sh/release-namespace"] ?? ""}/${release}: its removal deletes it`
    );
  },
  ({ annotations, labels }) => {
    const id = annotations["argocd.argoproj.io/tracking-id"] ?? labels["argocd.argoproj.io/instance"];
    return id && `the Argo CD application ${id.split(":")[0]}: it prunes it`;
  },
  ({ labels }) => {
    const tool = ["kustomize.toolkit.fluxcd.io", "helm.toolkit.fluxcd.io"].find(
      (name) => labels[`${name}/name`] !== undefined,
    );
    return tool && `the Flux object ${labels[`${tool}/namespace`] ?? ""}/${labels[`${tool}/name`]}: it prunes it`;
  },
  // The generator of the original's definitions writes this annotation. An apply of ours removes it.
  ({ annotations }) =>
    annotations["controller-gen.kubebuilder.io/version"] === undefined
      ? undefined
      : "the original's manifests, which were applied: kubectl delete -f of these deletes it",
];

/** The kinds that the original systems define by the same names. Only Zonewise defines the others. */
export const SHARED_DEFINITIONS = [
  "zoneawarepoddisruptionbudgets.rollout-operator.grafana.com",
  "replicatemplates.rollout-operator.grafana.com",
  "phasedrollouts.sts.plus",
] as const;

/** Findings of definitions that belong to another installation; an owner with `zonewise` in its name is ours. */
export function examineDefinitionOwners(definitions: readonly Definition[]): Finding[] {
  return definitions.flatMap(({ metadata: { name = "", labels = {}, annotations = {} } = {} }) => {
    const owner = OWNERS.map((find) => find({ labels, annotations })).find(
      (text) => text !== undefined && !NAMED.test(text),
    );
    if (owner === undefined) return [];
    return [
      {
        level: "warning",
        check: "definition-owner",
        object: `customresourcedefinition/${name}`,
        message: `it belongs to ${owner}, and with it every object of this kind in the cluster`,
        fix: "docs/migration.md#what-to-delete-and-what-not says how to take it over before you remove the original",
      } as const,
    ];
  });
}
