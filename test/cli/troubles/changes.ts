/** What goes wrong on a cluster, and what people write, for the rows of the table. */
import assert from "node:assert/strict";
import { withDefaults } from "../../emulator/defaults.ts";
import { dig, type Fields, fieldsOf, type KubeObject, listOf, type Metadata, put } from "../../emulator/objects.ts";
import { NAMESPACE, SETS, type Installation } from "./installation.ts";

export const ZONES = ["ingester-zone-a", "ingester-zone-b", "ingester-zone-c"];

/** Writes another template into the zones, as an apply does. */
export function setTemplate(
  at: Installation,
  image: string,
  { zones = ZONES, annotations = {} }: { zones?: readonly string[]; annotations?: Record<string, string> } = {},
): void {
  for (const zone of zones)
    change(at, SETS, zone, (set) => {
      const template = dig(set, "spec", "template") as Fields;
      const [container] = listOf(dig(template, "spec", "containers"));
      const containers = [{ ...fieldsOf(container), image }];
      const marked = put(template, ["metadata", "annotations"], annotations);
      return put(set, ["spec", "template"], put(marked, ["spec", "containers"], containers));
    });
}

/** Changes an object in the store, past admission. */
export function change(
  { stage }: Pick<Installation, "stage">,
  resource: string,
  name: string,
  to: (object: KubeObject) => KubeObject,
): void {
  const { store } = stage.emulator;
  const found =
    store.get(resource, NAMESPACE, name) ??
    store.get(resource, undefined, name) ??
    assert.fail(`no ${resource} ${name}`);
  store.update(resource, to(found));
}

export const annotate = (at: Installation, resource: string, name: string, annotations: Record<string, string>): void =>
  change(at, resource, name, (object) => ({
    ...object,
    metadata: { ...object.metadata, annotations: { ...object.metadata.annotations, ...annotations } },
  }));

export const label = (at: Installation, resource: string, name: string, labels: Record<string, string>): void =>
  change(at, resource, name, (object) => ({
    ...object,
    metadata: { ...object.metadata, labels: { ...object.metadata.labels, ...labels } },
  }));

export const setSpec = (at: Installation, resource: string, name: string, path: string[], value: unknown): void =>
  change(at, resource, name, (object) => put(object, ["spec", ...path], value));

/** By its API's only version that we use. */
export function create(
  { stage }: Installation,
  resource: string,
  kind: string,
  { metadata, ...rest }: { readonly metadata: Partial<Metadata>; readonly [field: string]: unknown },
): void {
  const apiVersion = APIS[resource.slice(resource.indexOf(".") + 1)] ?? "v1";
  const draft = { apiVersion, kind, metadata: { namespace: NAMESPACE, ...metadata }, ...rest };
  stage.emulator.store.create(resource, withDefaults(resource, draft));
}

const APIS: Readonly<Record<string, string>> = {
  "zonewise.dev": "zonewise.dev/v1",
  "sts.plus": "sts.plus/v1alpha1",
  "rollout-operator.grafana.com": "rollout-operator.grafana.com/v1",
  policy: "policy/v1",
  apps: "apps/v1",
  batch: "batch/v1",
};

export const remove = ({ stage }: Installation, resource: string, name: string): void =>
  void stage.emulator.store.remove(resource, NAMESPACE, name);

/** As `kubectl delete --cascade=orphan` deletes a StatefulSet. */
export const removeWithoutPods = ({ stage }: Installation, zone: string): void =>
  void stage.emulator.store.remove(SETS, NAMESPACE, zone, { propagationPolicy: "Orphan" });
