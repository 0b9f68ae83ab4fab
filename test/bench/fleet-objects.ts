/**
 * A fleet of settled rollout groups on a real control plane, whose kubelets are simulated: the statuses of pods and
 * StatefulSets are written directly. No controller may run there that makes or deletes pods.
 */
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { parse } from "yaml";
import { visitEach } from "../../infra/slots.ts";
import type { Admin } from "../cluster/stage/client.ts";
import { copyPods, type Owner } from "./fleet-etcd.ts";
import { podJson, podSpec } from "./pod-list.ts";

export interface FleetSize {
  readonly groups: number;
  /** Pods of each of the three zones of a group. */
  readonly replicas: number;
}

export const NAMESPACE = "default";
/** Of all zones, before and after a change of their template. */
const REVISIONS = ["1", "2"] as const;

const GROUPS_AT_ONCE = 4;
const PODS_AT_ONCE = 8;
const CONTROLLER_MS = 2000;
const REST_OF_MEMORY = 6 * 2 ** 30;
const CRDS = ["zoneawarepoddisruptionbudgets", "rolloutgroups", "rolloutgates", "phasedrollouts"];

const SETS = `/apis/apps/v1/namespaces/${NAMESPACE}/statefulsets`;
const PODS = `/api/v1/namespaces/${NAMESPACE}/pods`;
const BUDGETS = `/apis/rollout-operator.grafana.com/v1/namespaces/${NAMESPACE}/zoneawarepoddisruptionbudgets`;

interface Stored {
  readonly metadata: { readonly uid: string };
  readonly status?: { readonly readyReplicas?: number };
}

export const zonesOf = (group: string): string[] => ["a", "b", "c"].map((zone) => `${group}-zone-${zone}`);

/**
 * Creates what is missing, and resolves with how many groups are whole: fewer than asked for if `minutes` are over, or
 * less than 6 GiB of the machine's memory are left.
 */
export async function createFleet(
  admin: Admin,
  size: FleetSize,
  { minutes, etcd }: { readonly minutes: number; readonly etcd: string | undefined },
): Promise<{ groups: number; ended: string }> {
  await prepare(admin);
  const names = Array.from({ length: size.groups }, (_, i) => `g${i}`);
  // One of each length of name is made through the API server, and the others are copies of it.
  const models = new Map(names.toReversed().map((name) => [name.length, name]));
  if (etcd) for (const model of models.values()) await createGroup(admin, model, size.replicas);
  const end = performance.now() + minutes * 60_000;
  const over = new AbortController();
  let groups = 0;
  await visitEach(names, { atOnce: GROUPS_AT_ONCE, signal: over.signal }, async (group) => {
    const model = models.get(group.length) ?? group;
    await createGroup(admin, group, size.replicas, etcd && model !== group ? { etcd, model } : undefined);
    groups++;
    if (groups % 25 === 0) console.error(`${groups} groups of ${size.groups}, ${gib(availableMemory())} free`);
    if (performance.now() > end) over.abort(`${minutes} minutes were over`);
    if (availableMemory() < REST_OF_MEMORY) over.abort("less than 6 GiB of memory were left");
  });
  return { groups, ended: String(over.signal.aborted ? over.signal.reason : "") };
}

/** Bytes of memory that the machine has left; Infinity without /proc. */
function availableMemory(): number {
  try {
    return Number(/MemAvailable:\s+(\d+) kB/.exec(readFileSync("/proc/meminfo", "utf8"))?.[1]) * 1024;
  } catch {
    return Infinity;
  }
}

const gib = (bytes: number): string => `${(bytes / 2 ** 30).toFixed(1)} GiB`;

/** Creates an object, unless it exists. */
export async function ensure({ call }: Pick<Admin, "call">, path: string, body: object): Promise<void> {
  await call("POST", path, body).catch((error: Error) => {
    if (error.cause !== 409) throw error;
  });
}

/** Creates what groups need. Throws if a controller makes pods there. */
export async function prepare(admin: Admin): Promise<void> {
  for (const name of CRDS) {
    const text = readFileSync(new URL(`../../infra/manifests/crds/${name}.yaml`, import.meta.url), "utf8");
    await ensure(admin, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", parse(text) as object);
  }
  await ensure(admin, `/api/v1/namespaces/${NAMESPACE}/serviceaccounts`, { metadata: { name: "ingester" } });
  await ensure(admin, SETS, buildZone("probe", "probe-zone-a", 1));
  await sleep(CONTROLLER_MS);
  const { items } = await admin.call<{ items: unknown[] }>("GET", `${PODS}?labelSelector=name%3Dprobe-zone-a`);
  await admin.call("DELETE", `${SETS}/probe-zone-a`);
  if (items.length > 0)
    throw new Error("a controller makes the pods of StatefulSets there: end kube-controller-manager and the kubelets");
}

/** Creates a settled group with a budget, or what is missing of it. */
export async function createGroup(
  admin: Admin,
  group: string,
  replicas: number,
  copied?: { readonly etcd: string; readonly model: string },
): Promise<void> {
  const zones = zonesOf(group);
  const last = await admin.call<Stored>("GET", `${SETS}/${zones.at(-1)}`).catch(() => undefined);
  if (last?.status?.readyReplicas === replicas) return;
  for (const name of zones) {
    await ensure(admin, SETS, buildZone(group, name, replicas));
    const owner = await ownerOf(admin, group, name);
    if (copied) {
      const model = await ownerOf(admin, copied.model, name.replace(group, copied.model));
      await copyPods(copied.etcd, NAMESPACE, model, owner);
    } else {
      const ordinals = Array.from({ length: replicas }, (_, i) => i);
      await visitEach(ordinals, { atOnce: PODS_AT_ONCE }, (ordinal) => createPod(admin, owner, ordinal));
    }
    await writeZoneStatus(admin, name, { replicas, isOutdated: false });
  }
  await ensure(admin, BUDGETS, {
    apiVersion: "rollout-operator.grafana.com/v1",
    kind: "ZoneAwarePodDisruptionBudget",
    metadata: { name: group },
    spec: { maxUnavailable: replicas, selector: { matchLabels: { "rollout-group": group } } },
  });
}

async function ownerOf({ call }: Admin, group: string, name: string): Promise<Owner> {
  const { metadata } = await call<Stored>("GET", `${SETS}/${name}`);
  return { group, name, uid: metadata.uid };
}

/** No scheduler and no kubelet takes the pod. */
async function createPod(admin: Admin, { group, name, uid }: Owner, ordinal: number): Promise<void> {
  const pod = `${name}-${ordinal}`;
  const owner = { apiVersion: "apps/v1", kind: "StatefulSet", name, uid, controller: true, blockOwnerDeletion: true };
  const labels = { name, "rollout-group": group, "controller-revision-hash": `${name}-${REVISIONS[0]}` };
  await ensure(admin, PODS, {
    metadata: { name: pod, labels, ownerReferences: [owner] },
    spec: { ...podSpec(ordinal), schedulerName: "nobody" },
  });
  await writePodStatus(admin, pod, true);
}

/** Writes what a kubelet would. */
export async function writePodStatus({ call }: Admin, pod: string, ready: boolean): Promise<void> {
  const { status } = JSON.parse(podJson(Number(pod.slice(pod.lastIndexOf("-") + 1)))) as {
    status: { conditions: { type: string }[] };
  };
  const conditions = status.conditions.map((condition) =>
    condition.type === "Ready" && !ready ? { ...condition, status: "False" } : condition,
  );
  await call("PATCH", `${PODS}/${pod}/status`, { status: { ...status, conditions } });
}

/** Writes what the StatefulSet controller would: all pods are ready, and updated unless the template is newer than they. */
export async function writeZoneStatus(
  { call }: Admin,
  name: string,
  { replicas, isOutdated }: { readonly replicas: number; readonly isOutdated: boolean },
): Promise<void> {
  const counts = { replicas, readyReplicas: replicas, availableReplicas: replicas };
  await call("PATCH", `${SETS}/${name}/status`, {
    status: {
      ...counts,
      observedGeneration: 1,
      currentReplicas: isOutdated ? replicas : 0,
      updatedReplicas: isOutdated ? 0 : replicas,
      currentRevision: `${name}-${REVISIONS[0]}`,
      updateRevision: `${name}-${REVISIONS[isOutdated ? 1 : 0]}`,
    },
  });
}

function buildZone(group: string, name: string, replicas: number): object {
  return {
    apiVersion: "apps/v1",
    kind: "StatefulSet",
    metadata: { name, labels: { "rollout-group": group } },
    spec: {
      serviceName: name,
      replicas,
      podManagementPolicy: "Parallel",
      updateStrategy: { type: "OnDelete" },
      selector: { matchLabels: { name } },
      template: { metadata: { labels: { name, "rollout-group": group } }, spec: podSpec(1) },
    },
  };
}
