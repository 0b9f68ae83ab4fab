/**
 * A fleet of settled rollout groups on a real control plane, whose kubelets are simulated: the statuses of pods and
 * StatefulSets are written directly. No controller may run there that makes or deletes pods.
 */
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { parse } from "yaml";
import { visitEach } from "../../infra/slots.ts";
import type { Admin } from "../cluster/stage/client.ts";
import { copyPods, type Owner, type Pair, readPods } from "./fleet-etcd.ts";
import { podJson, podSpec } from "./pod-list.ts";

export interface FleetSize {
  readonly groups: number;
  /** Pods of each of the three zones of a group. */
  readonly replicas: number;
  /** Among which the groups are spread, 1 to 100: `default`, `fleet01` and so on. */
  readonly namespaces: number;
}

/** Names of one length, as pods are copied. */
const nameNamespace = (i: number): string => (i === 0 ? "default" : `fleet${String(i).padStart(2, "0")}`);

/** Neighbours share one: the first of them are in `default`. */
export const namespaceOf = (group: string, { groups, namespaces }: FleetSize): string =>
  nameNamespace(Math.floor(Number(group.slice(1)) / Math.ceil(groups / namespaces)));

/** Of all zones, before and after a change of their template. */
const REVISIONS = ["1", "2"] as const;

const GROUPS_AT_ONCE = 4;
const PODS_AT_ONCE = 8;
const CONTROLLER_MS = 2000;
const REST_OF_MEMORY = 6 * 2 ** 30;
const CRDS = ["zoneawarepoddisruptionbudgets", "rolloutgroups", "rolloutgates", "phasedrollouts"];

const setsOf = (namespace: string): string => `/apis/apps/v1/namespaces/${namespace}/statefulsets`;
const podsOf = (namespace: string): string => `/api/v1/namespaces/${namespace}/pods`;
const budgetsOf = (namespace: string): string =>
  `/apis/rollout-operator.grafana.com/v1/namespaces/${namespace}/zoneawarepoddisruptionbudgets`;

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
  await prepare(admin, size.namespaces);
  const names = Array.from({ length: size.groups }, (_, i) => `g${i}`);
  const placeOf = (group: string): GroupPlace => ({ namespace: namespaceOf(group, size), group });
  // One of each length of name is made through the API server, and the others are copies of it.
  const models = new Map<number, Model>();
  for (const group of etcd ? names.toReversed() : []) {
    if (models.has(group.length)) continue;
    await createGroup(admin, placeOf(group), size.replicas);
    const zones = zonesOf(group).map(async (name) => {
      const owner = await ownerOf(admin, placeOf(group), name);
      return { owner, pods: await readPods(etcd ?? "", owner) };
    });
    models.set(group.length, await Promise.all(zones));
  }
  const end = performance.now() + minutes * 60_000;
  const over = new AbortController();
  let groups = 0;
  await visitEach(names, { atOnce: GROUPS_AT_ONCE, signal: over.signal }, async (group) => {
    const model = models.get(group.length);
    await createGroup(admin, placeOf(group), size.replicas, etcd && model ? { etcd, model } : undefined);
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

/** Creates what groups of so many namespaces need. Throws if a controller makes pods there. */
export async function prepare(admin: Admin, namespaces = 1): Promise<void> {
  for (const name of CRDS) {
    const text = readFileSync(new URL(`../../infra/manifests/crds/${name}.yaml`, import.meta.url), "utf8");
    await ensure(admin, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", parse(text) as object);
  }
  for (const name of Array.from({ length: namespaces }, (_, i) => nameNamespace(i))) {
    await ensure(admin, "/api/v1/namespaces", { metadata: { name } });
    await ensure(admin, `/api/v1/namespaces/${name}/serviceaccounts`, { metadata: { name: "ingester" } });
  }
  await refuseControllers(admin, nameNamespace(0));
}

async function refuseControllers(admin: Admin, namespace: string): Promise<void> {
  await ensure(admin, setsOf(namespace), buildZone("probe", "probe-zone-a", 1));
  await sleep(CONTROLLER_MS);
  const pods = `${podsOf(namespace)}?labelSelector=name%3Dprobe-zone-a`;
  const { items } = await admin.call<{ items: unknown[] }>("GET", pods);
  await admin.call("DELETE", `${setsOf(namespace)}/probe-zone-a`);
  if (items.length > 0)
    throw new Error("a controller makes the pods of StatefulSets there: end kube-controller-manager and the kubelets");
}

export interface GroupPlace {
  readonly namespace: string;
  readonly group: string;
}

/** The zones of a group that has been made. */
type Model = readonly { readonly owner: Owner; readonly pods: readonly Pair[] }[];

/** Creates a settled group with a budget, or what is missing of it. */
export async function createGroup(
  admin: Admin,
  place: GroupPlace,
  replicas: number,
  copied?: { readonly etcd: string; readonly model: Model },
): Promise<void> {
  const { namespace, group } = place;
  const sets = setsOf(namespace);
  const zones = zonesOf(group);
  const last = await admin.call<Stored>("GET", `${sets}/${zones.at(-1)}`).catch(() => undefined);
  if (last?.status?.readyReplicas === replicas) return;
  for (const [i, name] of zones.entries()) {
    await ensure(admin, sets, buildZone(group, name, replicas));
    const owner = await ownerOf(admin, place, name);
    const model = copied?.model[i];
    if (copied && model) await copyPods(copied.etcd, model.pods, model.owner, owner);
    else {
      const ordinals = Array.from({ length: replicas }, (_, i) => i);
      await visitEach(ordinals, { atOnce: PODS_AT_ONCE }, (ordinal) => createPod(admin, owner, ordinal));
    }
    await writeZoneStatus(admin, { namespace, name }, { replicas, isOutdated: false });
  }
  await ensure(admin, budgetsOf(namespace), {
    apiVersion: "rollout-operator.grafana.com/v1",
    kind: "ZoneAwarePodDisruptionBudget",
    metadata: { name: group },
    spec: { maxUnavailable: replicas, selector: { matchLabels: { "rollout-group": group } } },
  });
}

async function ownerOf({ call }: Admin, place: GroupPlace, name: string): Promise<Owner> {
  const { metadata } = await call<Stored>("GET", `${setsOf(place.namespace)}/${name}`);
  return { ...place, name, uid: metadata.uid };
}

/** No scheduler and no kubelet takes the pod. */
async function createPod(admin: Admin, { namespace, group, name, uid }: Owner, ordinal: number): Promise<void> {
  const pod = `${name}-${ordinal}`;
  const owner = { apiVersion: "apps/v1", kind: "StatefulSet", name, uid, controller: true, blockOwnerDeletion: true };
  const labels = { name, "rollout-group": group, "controller-revision-hash": `${name}-${REVISIONS[0]}` };
  await ensure(admin, podsOf(namespace), {
    metadata: { name: pod, labels, ownerReferences: [owner] },
    spec: { ...podSpec(ordinal), schedulerName: "nobody" },
  });
  await writePodStatus(admin, pod, true, namespace);
}

/** Writes what a kubelet would. */
export async function writePodStatus(
  { call }: Admin,
  pod: string,
  ready: boolean,
  namespace = nameNamespace(0),
): Promise<void> {
  const status = podStatus(Number(pod.slice(pod.lastIndexOf("-") + 1)), ready);
  await call("PATCH", `${podsOf(namespace)}/${pod}/status`, { status });
}

/** Of a pod that is not ready, no container is either: we judge it by its condition, the original by its containers. */
export function podStatus(ordinal: number, ready: boolean) {
  const { status } = JSON.parse(podJson(ordinal)) as {
    status: { conditions: { type: string; status: string }[]; containerStatuses: { ready: boolean }[] };
  };
  const conditions = status.conditions.map((condition) =>
    condition.type.endsWith("Ready") && !ready ? { ...condition, status: "False" } : condition,
  );
  return { ...status, conditions, containerStatuses: status.containerStatuses.map((one) => ({ ...one, ready })) };
}

/** Writes what the StatefulSet controller would: all pods are ready, and updated unless the template is newer than they. */
export async function writeZoneStatus(
  { call }: Admin,
  { namespace, name }: { readonly namespace: string; readonly name: string },
  { replicas, isOutdated }: { readonly replicas: number; readonly isOutdated: boolean },
): Promise<void> {
  const counts = { replicas, readyReplicas: replicas, availableReplicas: replicas };
  await call("PATCH", `${setsOf(namespace)}/${name}/status`, {
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
