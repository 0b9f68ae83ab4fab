/** The gate of the demonstration's third part. */
import type { Cluster } from "../../infra/kubernetes/cluster.ts";
import { rolloutGates, type CustomObject } from "../../infra/kubernetes/custom-resources.ts";

const NAME = "error-rate";

interface GateOptions {
  readonly namespace: string;
  readonly group: string;
  /** Of its Prometheus. */
  readonly url: string;
}

/**
 * Creates a gate between the zones of the group, which asks every 2 s and passes after two successes; dispose of it to
 * delete it.
 */
export async function createGate(cluster: Cluster, { namespace, group, url }: GateOptions): Promise<AsyncDisposable> {
  const query = { url, expr: "rate(http_errors_total[1m]) > 0.01" };
  const check = {
    name: "errors",
    query,
    successWhen: "NoData",
    initialDelaySeconds: 0,
    periodSeconds: 2,
    successThreshold: 2,
  };
  const body = {
    apiVersion: "zonewise.dev/v1",
    kind: "RolloutGate",
    metadata: { name: NAME, namespace },
    spec: { group, checks: [check] },
  };
  const { metadata } = await cluster.create<CustomObject>(rolloutGates, { namespace, body });
  return {
    [Symbol.asyncDispose]: () =>
      cluster.remove(rolloutGates, { namespace, name: NAME, preconditions: { uid: metadata.uid ?? "" } }),
  };
}
