/** The manifests as they lie in the repository. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseAllDocuments } from "yaml";

export const ROOT = join(import.meta.dirname, "../..");

/** Whatever a manifest holds, read by paths. */
export interface Manifest {
  readonly kind?: string;
  readonly metadata?: { readonly name?: string; readonly labels?: Readonly<Record<string, string>> };
  readonly [key: string]: unknown;
}

export function read(file: string): Manifest[] {
  return parseAllDocuments(readFileSync(join(ROOT, file), "utf8")).map((document) => {
    assert.deepEqual(document.errors, [], file);
    return document.toJS() as Manifest;
  });
}

export function find(file: string, kind: string, name: string): Manifest {
  return (
    read(`infra/manifests/${file}`).find((one) => one.kind === kind && one.metadata?.name === name) ??
    assert.fail(`${kind} ${name} in ${file}`)
  );
}

/** Everything below `value` that `take` wants. */
export function collect<T>(value: unknown, take: (object: Readonly<Record<string, unknown>>) => T | undefined): T[] {
  if (typeof value !== "object" || value === null) return [];
  const own = take(value as Readonly<Record<string, unknown>>);
  return [...(own === undefined ? [] : [own]), ...Object.values(value).flatMap((below) => collect(below, take))];
}

const STATEFUL_SETS = {
  operations: ["UPDATE"],
  apiGroups: ["apps"],
  apiVersions: ["v1"],
  resources: ["statefulsets", "statefulsets/scale"],
};
const PHASED = {
  operations: ["CREATE", "UPDATE"],
  apiGroups: ["sts.plus"],
  apiVersions: ["v1alpha1"],
  resources: ["phasedrollouts"],
};

const GATES = {
  operations: ["CREATE", "UPDATE"],
  apiGroups: ["zonewise.dev"],
  apiVersions: ["v1"],
  resources: ["rolloutgates"],
};

/** What is registered for each webhook. */
export const HOOKS = [
  {
    name: "no-downscale",
    kind: "Validating",
    sideEffects: "None",
    rule: { ...STATEFUL_SETS, resources: ["statefulsets/scale", "deployments/scale", "replicasets/scale"] },
    sentOnlyIf: ["shrinks"],
  },
  {
    name: "prepare-downscale",
    kind: "Mutating",
    sideEffects: "NoneOnDryRun",
    reinvocationPolicy: "IfNeeded",
    rule: STATEFUL_SETS,
    sentOnlyIf: ["not-a-dry-run", "shrinks", "is-prepared"],
  },
  {
    name: "pod-eviction",
    kind: "Mutating",
    path: "/admission/mutate-pod-eviction",
    sideEffects: "NoneOnDryRun",
    rule: { operations: ["CREATE"], apiGroups: [""], apiVersions: ["v1"], resources: ["pods/eviction"] },
  },
  {
    name: "zpdb-validation",
    kind: "Validating",
    // What it cannot be asked about is invalid as stored, and then nothing is evicted.
    failurePolicy: "Ignore",
    sideEffects: "None",
    rule: {
      operations: ["CREATE", "UPDATE"],
      apiGroups: ["rollout-operator.grafana.com"],
      apiVersions: ["v1"],
      resources: ["zoneawarepoddisruptionbudgets"],
    },
  },
  {
    name: "phased-defaults",
    kind: "Mutating",
    path: "/mutate-sts-plus-v1alpha1-phasedrollout",
    // The reconciler has the same defaults.
    failurePolicy: "Ignore",
    sideEffects: "None",
    rule: PHASED,
  },
  {
    name: "phased-validation",
    kind: "Validating",
    path: "/validate-sts-plus-v1alpha1-phasedrollout",
    // Without an answer of Prometheus no pod is released, and no gate opens.
    failurePolicy: "Ignore",
    sideEffects: "None",
    rule: PHASED,
    more: [GATES],
  },
  {
    name: "raise-partition",
    kind: "Mutating",
    // The reconciler raises the partition, too.
    failurePolicy: "Ignore",
    sideEffects: "None",
    rule: { ...STATEFUL_SETS, resources: ["statefulsets"] },
    sentOnlyIf: ["is-managed", "by-others", "may-release-pods"],
  },
];
