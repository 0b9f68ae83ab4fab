/** A zone to scale, and the ways to scale it that kubectl has. */
import assert from "node:assert/strict";
import type { StatefulSet } from "../../../infra/kubernetes/resources.ts";
import type { WebhookStage } from "./webhook-stage.ts";
import type { KubectlResult } from "../stage/kubectl.ts";
import { until } from "../stage/until.ts";
import { buildZone } from "../stage/zones.ts";

/** Creates the zone, three pods unless the project's zones say otherwise, and waits for it. */
export async function createZone(
  stage: WebhookStage,
  name: string,
  labels: Record<string, string> = {},
  group = "",
): Promise<void> {
  const zone = buildZone({ group, name });
  const prepared = {
    "grafana.com/prepare-downscale-http-path": "prepare-downscale",
    "grafana.com/prepare-downscale-http-port": String(stage.pods.port),
  };
  const metadata = { ...zone.metadata, labels: { ...zone.metadata?.labels, ...labels }, annotations: prepared };
  const { code, text } = await stage.kubectl(["apply", "-f", "-"], { ...zone, metadata });
  assert.equal(code, 0, text);
  await untilReady(stage, name);
}

/** Resolves once all its pods are ready and its status says so. */
export async function untilReady(stage: WebhookStage, name: string): Promise<void> {
  await until(`${name} is ready`, async () => {
    const { spec, status, metadata } = await stage.get(name);
    const counts = [status?.replicas, status?.readyReplicas, status?.updatedReplicas];
    return status?.observedGeneration === metadata?.generation && counts.every((count) => count === spec?.replicas);
  });
}

/**
 * Writes the object with other replicas, as `kubectl get -o json` prints it: its version is a precondition, and every
 * change of the status makes a new one.
 */
async function rewrite(
  stage: WebhookStage,
  name: string,
  write: (zone: StatefulSet) => Promise<KubectlResult>,
): Promise<KubectlResult> {
  let result: KubectlResult | undefined;
  await until(`${name} is written in the version that was read`, async () => {
    await untilReady(stage, name);
    result = await write(await stage.get(name));
    return !/the object has been modified/.test(result.text);
  });
  return result ?? assert.fail(name);
}

const withReplicas = (zone: StatefulSet, replicas: number) => ({ ...zone, spec: { ...zone.spec, replicas } });

export const patchOf = (replicas: number): string => JSON.stringify({ spec: { replicas } });

/** The ways to scale with kubectl, by name. */
export const SCALE_METHODS: Readonly<
  Record<string, (stage: WebhookStage, name: string, to: number) => Promise<KubectlResult>>
> = {
  scale: (stage, name, to) => stage.kubectl(["scale", "statefulset", name, `--replicas=${to}`]),
  "dry run of scale": (stage, name, to) =>
    stage.kubectl(["scale", "statefulset", name, `--replicas=${to}`, "--dry-run=server"]),
  patch: (stage, name, to) => stage.kubectl(["patch", "statefulset", name, "-p", patchOf(to)]),
  "patch of the subresource": (stage, name, to) =>
    stage.kubectl(["patch", "statefulset", name, "--subresource=scale", "--type=merge", "-p", patchOf(to)]),
  replace: (stage, name, to) =>
    rewrite(stage, name, (zone) => stage.kubectl(["replace", "-f", "-"], withReplicas(zone, to))),
  "PUT of the scale in its version, as autoscalers do": (stage, name, to) =>
    rewrite(stage, name, async () => {
      const path = `/apis/apps/v1/namespaces/${stage.namespace}/statefulsets/${name}/scale`;
      const scale = await stage.call<{ metadata: { resourceVersion: string } }>("GET", path);
      assert.ok(scale.metadata.resourceVersion);
      return await stage.kubectl(["replace", "--raw", path, "-f", "-"], { ...scale, spec: { replicas: to } });
    }),
  apply: (stage, name, to) =>
    rewrite(stage, name, (zone) => {
      const { apiVersion, kind, metadata, spec } = withReplicas(zone, to);
      const kept = { name, labels: metadata?.labels, annotations: { ...metadata?.annotations } };
      const applied = { apiVersion, kind, metadata: kept, spec };
      return stage.kubectl(["apply", "--server-side", "--force-conflicts", "-f", "-"], applied);
    }),
};
