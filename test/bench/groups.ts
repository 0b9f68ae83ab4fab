/** Rollout groups of three zones on the embedded cluster, with pods of realistic size. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Emulator } from "../emulator/index.ts";
import { managedFields, podSpec } from "./pod-list.ts";
import { statefulSet } from "../builders/objects.ts";

const SETS = "statefulsets.apps";

export interface Size {
  readonly groups: number;
  /** Pods per zone. */
  readonly replicas: number;
}

/** Creates the groups and resolves once all their pods are ready. */
export async function createGroups({ store }: Emulator, { groups, replicas }: Size): Promise<void> {
  const zones = Array.from({ length: groups }, (_, group) =>
    ["a", "b", "c"].map((zone) => ({ group: `g${group}`, zone })),
  ).flat();
  for (const { group, zone } of zones) store.create(SETS, buildZone(group, `${group}-zone-${zone}`, replicas));
  const isReady = (set: object): boolean =>
    (set as { status?: { readyReplicas?: number } }).status?.readyReplicas === replicas;
  while (!store.list(SETS, "default").every(isReady)) await sleep(200);
  // The embedded cluster has no managedFields; a real one sends them with every pod.
  const written = { managedFields: managedFields() };
  for (const pod of store.list("pods", "default"))
    store.update("pods", { ...pod, metadata: { ...pod.metadata, ...written } });
  await sleep(500);
}

const buildZone = (group: string, name: string, replicas: number) =>
  statefulSet(name, replicas, {
    labels: { "rollout-group": group },
    spec: {
      selector: { matchLabels: { name, "rollout-group": group } },
      template: {
        metadata: { labels: { name, "rollout-group": group }, annotations: { "sim/ready-after-ms": "0" } },
        spec: podSpec(1),
      },
    },
  });

/** Changes one zone's template, which begins a rollout of its group. */
export async function touchZone({ store }: Emulator, name: string): Promise<void> {
  const zone = store.get(SETS, "default", name);
  if (!zone) throw new Error(`there is no ${name}`);
  const spec = zone["spec"] as { template: { metadata: object } };
  const template = { ...spec.template, spec: podSpec(2) };
  store.update(SETS, { ...zone, spec: { ...spec, template } });
  await sleep(500);
}
