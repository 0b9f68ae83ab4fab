/**
 * Settled rollout groups on a real control plane, whose kubelets are simulated: the statuses of pods and
 * StatefulSets are written directly. No controller may run there that makes or deletes pods.
 */
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { parse } from "yaml";
import { visitEach } from "../../infra/slots.ts";
import type { Admin } from "../cluster/stage/client.ts";
import { make, statefulSet } from "../builders/objects.ts";
import { podJson, podSpec } from "./pod-list.ts";

const NAMESPACE = "default";

const REVISION = "1";

const PODS_AT_ONCE = 8;
const CONTROLLER_MS = 2000;
const CRDS = ["zoneawarepoddisruptionbudgets", "rolloutgroups", "rolloutgates", "phasedrollouts"];

const SETS = `/apis/apps/v1/namespaces/${NAMESPACE}/statefulsets`;
const PODS = `/api/v1/namespaces/${NAMESPACE}/pods`;
const BUDGETS = `/apis/rollout-operator.grafana.com/v1/namespaces/${NAMESPACE}/zoneawarepoddisruptionbudgets`;

interface Stored {
  readonly metadata: { readonly uid: string };
  readonly status?: { readonly readyReplicas?: number };
}

export const zonesOf = (group: string): string[] => ["a", "b", "c"].map((zone) => `${group}-zone-${zone}`);

/** Creates an object, unless it exists. */
async function ensure({ call }: Pick<Admin, "call">, path: string, body: object): Promise<void> {
  await call("POST", path, body).catch((error: Error) => {
    if (error.cause !== 409) throw error;
  });
}

/** Creates the definitions that are not there yet. */
export async function installDefinitions(admin: Pick<Admin, "call">): Promise<void> {
  for (const name of CRDS) {
    const text = readFileSync(new URL(`../../infra/manifests/crds/${name}.yaml`, import.meta.url), "utf8");
    await ensure(admin, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", parse(text) as object);
  }
}

/** Creates what groups need. Throws if a controller makes pods there. */
export async function prepare(admin: Admin): Promise<void> {
  await installDefinitions(admin);
  await ensure(admin, `/api/v1/namespaces/${NAMESPACE}/serviceaccounts`, { metadata: { name: "ingester" } });
  await refuseControllers(admin);
}

async function refuseControllers(admin: Admin): Promise<void> {
  await ensure(admin, SETS, buildZone("probe", "probe-zone-a", 1));
  await sleep(CONTROLLER_MS);
  const pods = `${PODS}?labelSelector=name%3Dprobe-zone-a`;
  const { items } = await admin.call<{ items: unknown[] }>("GET", pods);
  await admin.call("DELETE", `${SETS}/probe-zone-a`);
  if (items.length > 0)
    throw new Error("a controller makes the pods of StatefulSets there: end kube-controller-manager and the kubelets");
}

/** Creates a settled group with a budget, or what is missing of it. */
export async function createGroup(admin: Admin, group: string, replicas: number): Promise<void> {
  const zones = zonesOf(group);
  const last = await admin.call<Stored>("GET", `${SETS}/${zones.at(-1)}`).catch(() => undefined);
  if (last?.status?.readyReplicas === replicas) return;
  for (const name of zones) {
    await ensure(admin, SETS, buildZone(group, name, replicas));
    const { metadata } = await admin.call<Stored>("GET", `${SETS}/${name}`);
    const owner = { group, name, uid: metadata.uid };
    const ordinals = Array.from({ length: replicas }, (_, i) => i);
    await visitEach(ordinals, { atOnce: PODS_AT_ONCE }, (ordinal) => createPod(admin, owner, ordinal));
    await writeZoneStatus(admin, name, replicas);
  }
  const spec = { maxUnavailable: replicas, selector: { matchLabels: { "rollout-group": group } } };
  await ensure(admin, BUDGETS, make("ZoneAwarePodDisruptionBudget", group, { spec }));
}

interface Owner {
  readonly group: string;
  readonly name: string;
  readonly uid: string;
}

/** No scheduler and no kubelet takes the pod. */
async function createPod(admin: Admin, { group, name, uid }: Owner, ordinal: number): Promise<void> {
  const pod = `${name}-${ordinal}`;
  const owner = { apiVersion: "apps/v1", kind: "StatefulSet", name, uid, controller: true, blockOwnerDeletion: true };
  const labels = { name, "rollout-group": group, "controller-revision-hash": `${name}-${REVISION}` };
  await ensure(admin, PODS, {
    metadata: { name: pod, labels, ownerReferences: [owner] },
    spec: { ...podSpec(ordinal), schedulerName: "nobody" },
  });
  await writePodStatus(admin, pod, true);
}

/** Writes what a kubelet would. */
export async function writePodStatus({ call }: Admin, pod: string, ready: boolean): Promise<void> {
  const status = podStatus(Number(pod.slice(pod.lastIndexOf("-") + 1)), ready);
  await call("PATCH", `${PODS}/${pod}/status`, { status });
}

/** Of a pod that is not ready, no container is either: we judge it by its condition, the original by its containers. */
function podStatus(ordinal: number, ready: boolean) {
  const { status } = JSON.parse(podJson(ordinal)) as {
    status: { conditions: { type: string; status: string }[]; containerStatuses: { ready: boolean }[] };
  };
  const conditions = status.conditions.map((condition) =>
    condition.type.endsWith("Ready") && !ready ? { ...condition, status: "False" } : condition,
  );
  return { ...status, conditions, containerStatuses: status.containerStatuses.map((one) => ({ ...one, ready })) };
}

/** Writes what the StatefulSet controller would: all pods are ready and updated. */
async function writeZoneStatus({ call }: Admin, name: string, replicas: number): Promise<void> {
  await call("PATCH", `${SETS}/${name}/status`, {
    status: {
      replicas,
      readyReplicas: replicas,
      availableReplicas: replicas,
      updatedReplicas: replicas,
      observedGeneration: 1,
      currentRevision: `${name}-${REVISION}`,
      updateRevision: `${name}-${REVISION}`,
    },
  });
}

function buildZone(group: string, name: string, replicas: number): object {
  const labels = { name, "rollout-group": group };
  const template = { metadata: { labels }, spec: podSpec(1) };
  return statefulSet(name, replicas, {
    labels: { "rollout-group": group },
    spec: { selector: { matchLabels: labels }, template },
  });
}
