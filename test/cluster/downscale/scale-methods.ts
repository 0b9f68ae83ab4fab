/** A zone to scale, and the ways to scale it that kubectl has. */
import assert from "node:assert/strict";
import type { StatefulSet } from "../../../infra/kubernetes/resources.ts";
import type { WebhookStage } from "./webhook-stage.ts";
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

/** Returns the object as `kubectl get -o json` prints it, with other replicas. */
async function withReplicas(stage: WebhookStage, name: string, replicas: number): Promise<object> {
  // Its version is a precondition, and every change of the status makes a new one.
  await untilReady(stage, name);
  const zone = await stage.get(name);
  return { ...zone, spec: { ...zone.spec, replicas } };
}

export const patchOf = (replicas: number): string => JSON.stringify({ spec: { replicas } });

/** The ways to scale with kubectl, by name. */
export const SCALE_METHODS: Readonly<
  Record<string, (stage: WebhookStage, name: string, to: number) => Promise<{ code: number; text: string }>>
> = {
  scale: (stage, name, to) => stage.kubectl(["scale", "statefulset", name, `--replicas=${to}`]),
  "dry run of scale": (stage, name, to) =>
    stage.kubectl(["scale", "statefulset", name, `--replicas=${to}`, "--dry-run=server"]),
  patch: (stage, name, to) => stage.kubectl(["patch", "statefulset", name, "-p", patchOf(to)]),
  "patch of the subresource": (stage, name, to) =>
    stage.kubectl(["patch", "statefulset", name, "--subresource=scale", "--type=merge", "-p", patchOf(to)]),
  replace: async (stage, name, to) => {
    const replace = async () => await stage.kubectl(["replace", "-f", "-"], await withReplicas(stage, name, to));
    let replaced = await replace();
    await until(`${name} is replaced in the version that was read`, async () => {
      if (!/the object has been modified/.test(replaced.text)) return true;
      replaced = await replace();
      return false;
    });
    return replaced;
  },
  apply: async (stage, name, to) => {
    const { apiVersion, kind, metadata, spec } = (await withReplicas(stage, name, to)) as StatefulSet & {
      spec: object;
    };
    const kept = { name, labels: metadata?.labels, annotations: { ...metadata?.annotations } };
    return await stage.kubectl(["apply", "--server-side", "--force-conflicts", "-f", "-"], {
      apiVersion,
      kind,
      metadata: kept,
      spec,
    });
  },
};
