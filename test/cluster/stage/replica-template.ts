/** A ReplicaTemplate, as an autoscaler scales it. */
import type { Admin } from "./client.ts";
import { define } from "./definitions.ts";

/** Creates one with 3 replicas; resolves with its path. */
export async function createReplicaTemplate(
  admin: Pick<Admin, "call">,
  namespace: string,
  name: string,
): Promise<string> {
  await define(admin, "replicatemplates");
  const templates = `/apis/rollout-operator.grafana.com/v1/namespaces/${namespace}/replicatemplates`;
  const body = {
    apiVersion: "rollout-operator.grafana.com/v1",
    kind: "ReplicaTemplate",
    metadata: { name },
    spec: { replicas: 3 },
  };
  await admin.call("POST", templates, body);
  return `${templates}/${name}`;
}

/** The annotations of a zone that mirrors the replicas of this ReplicaTemplate. */
export const mirrorOf = (name: string): Readonly<Record<string, string>> => ({
  "grafana.com/rollout-mirror-replicas-from-resource-name": name,
  "grafana.com/rollout-mirror-replicas-from-resource-kind": "ReplicaTemplate",
  "grafana.com/rollout-mirror-replicas-from-resource-api-version": "rollout-operator.grafana.com/v1",
});
