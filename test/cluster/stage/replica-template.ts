/** A ReplicaTemplate, as an autoscaler scales it. */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { parse } from "yaml";
import type { Admin } from "./client.ts";

const CRD = new URL("../../../infra/manifests/crds/replicatemplates.yaml", import.meta.url);

/** Creates one with 3 replicas, and its definition if that is missing; resolves with its path. */
export async function createReplicaTemplate({ call }: Pick<Admin, "call">, namespace: string, name: string): Promise<string> {
  const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
  await call("POST", definitions, parse(await readFile(CRD, "utf8"))).catch((error: unknown) =>
    assert.match(String(error), /AlreadyExists/),
  );
  const templates = `/apis/rollout-operator.grafana.com/v1/namespaces/${namespace}/replicatemplates`;
  const body = {
    apiVersion: "rollout-operator.grafana.com/v1",
    kind: "ReplicaTemplate",
    metadata: { name },
    spec: { replicas: 3 },
  };
  // The API server serves a new definition after a moment.
  for (let i = 0; ; i++) {
    try {
      await call("POST", templates, body);
      return `${templates}/${name}`;
    } catch (error) {
      if (i === 50) throw error;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}

/** The annotations of a zone that mirrors the replicas of this ReplicaTemplate. */
export const mirrorOf = (name: string): Readonly<Record<string, string>> => ({
  "grafana.com/rollout-mirror-replicas-from-resource-name": name,
  "grafana.com/rollout-mirror-replicas-from-resource-kind": "ReplicaTemplate",
  "grafana.com/rollout-mirror-replicas-from-resource-api-version": "rollout-operator.grafana.com/v1",
});
