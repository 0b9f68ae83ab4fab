/** Builders of requests and objects. */
import type { Request } from "./client.ts";

export const MERGE = "application/merge-patch+json";
export const JSON_PATCH = "application/json-patch+json";
export const STRATEGIC = "application/strategic-merge-patch+json";

export const get = (path: string, accept?: string): Request => ({ method: "GET", path, ...(accept && { accept }) });
export const post = (path: string, body: unknown): Request => ({ method: "POST", path, body });
export const put = (path: string, body: unknown): Request => ({ method: "PUT", path, body });
export const patch = (path: string, body: unknown, type: string = MERGE): Request => ({
  method: "PATCH",
  path,
  body,
  type,
});
export const del = (path: string, body?: unknown): Request => ({
  method: "DELETE",
  path,
  ...(body !== undefined && { body }),
});

/** URL paths of the resources outside the core group. */
const GROUPS: Readonly<Record<string, string>> = {
  statefulsets: "apis/apps/v1",
  controllerrevisions: "apis/apps/v1",
  poddisruptionbudgets: "apis/policy/v1",
  leases: "apis/coordination.k8s.io/v1",
  zoneawarepoddisruptionbudgets: "apis/rollout-operator.grafana.com/v1",
  replicatemplates: "apis/rollout-operator.grafana.com/v1",
  phasedrollouts: "apis/sts.plus/v1alpha1",
  rolloutgates: "apis/zonewise.dev/v1",
};

/** The path of a namespaced resource, an object or a subresource. */
export function at(namespace: string, plural: string, ...rest: readonly string[]): string {
  return ["", GROUPS[plural] ?? "api/v1", "namespaces", namespace, plural, ...rest].join("/");
}

export function configMap(name: string, data: Record<string, string> = {}, metadata: object = {}): object {
  return { apiVersion: "v1", kind: "ConfigMap", metadata: { name, ...metadata }, data };
}

export interface SetOptions {
  readonly replicas?: number;
  readonly image?: string;
  readonly annotations?: Record<string, string>;
  readonly spec?: object;
}

/** A StatefulSet whose pods start and terminate fast. */
export function statefulSet(
  name: string,
  { replicas = 2, image = "app:1", annotations = {}, spec = {} }: SetOptions = {},
): object {
  return {
    apiVersion: "apps/v1",
    kind: "StatefulSet",
    metadata: { name },
    spec: {
      replicas,
      serviceName: name,
      selector: { matchLabels: { app: name } },
      template: {
        metadata: {
          labels: { app: name },
          annotations: { "sim/ready-after-ms": "100", "sim/exit-after-ms": "50", "sim/node": "node-1", ...annotations },
        },
        spec: { containers: [{ name: "main", image }] },
      },
      ...spec,
    },
  };
}

export function pod(
  name: string,
  metadata: { labels?: object; annotations?: object; finalizers?: string[]; ownerReferences?: object[] } = {},
  spec: object = {},
): object {
  const annotations = {
    "sim/ready-after-ms": "50",
    "sim/exit-after-ms": "50",
    "sim/node": "node-1",
    ...metadata.annotations,
  };
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, ...metadata, annotations },
    spec: { containers: [{ name: "main", image: "app:1" }], ...spec },
  };
}
