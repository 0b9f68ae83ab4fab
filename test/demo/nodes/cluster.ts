/**
 * The cluster of the demonstration of node updates: managed nodes, the definitions, the agents' pods, and what is
 * stored of them.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { parse } from "yaml";
import type { ShadowSpec, ShadowStatus } from "../../../reconciler/nodes/shadow.ts";
import { MANAGED_LABEL, MANAGED_VALUE, shadowName } from "../../../reconciler/nodes/shadow.ts";
import { reportNode } from "../../emulator/controllers/report-node.ts";
import { dig, type Draft, isTrue, put } from "../../emulator/objects.ts";
import type { KubeObject, Store } from "../../emulator/store.ts";
import { add } from "../../builders/objects.ts";
import { define } from "../definitions.ts";
import type { DrawnNode } from "./picture.ts";

export const HOME = "brupop-bottlerocket-aws";
export const AGENT = "brupop-agent-service-account";
const AGENTS = "brupop-agent";
const SHADOWS = "bottlerocketshadows.brupop.bottlerocket.aws";
const ZONE_LABEL = "topology.kubernetes.io/zone";
const CRDS = join(import.meta.dirname, "../../../infra/manifests/node-updates/crds");

/** Creates all that users apply, with a policy that does not wait long, and resolves with the nodes' names. */
export async function createFleet(store: Store): Promise<readonly string[]> {
  await define(store, ["rolloutgroups", "zoneawarepoddisruptionbudgets"]);
  for (const file of ["bottlerocketshadows.yaml", "nodeupdatepolicies.yaml"])
    store.create(
      "customresourcedefinitions.apiextensions.k8s.io",
      parse(await readFile(join(CRDS, file), "utf8")) as Draft,
    );
  add(store, "Namespace", HOME);
  add(store, "ServiceAccount", AGENT, { namespace: HOME });
  add(store, "NodeUpdatePolicy", "default", { spec: { maxConcurrent: 1, health: { minReadySeconds: 2 } } });
  const { uid } = add(store, "DaemonSet", AGENTS, { namespace: HOME }).metadata;
  const owner = { apiVersion: "apps/v1", kind: "DaemonSet", name: AGENTS, uid, controller: true };
  const names = store.list("nodes").map(({ metadata }) => metadata.name);
  for (const name of names) {
    const node = store.get("nodes", undefined, name) as KubeObject;
    // Of one topology zone: the pods of a node that is drained come up on the others.
    const labels = { ...node.metadata.labels, [ZONE_LABEL]: "zone-1", [MANAGED_LABEL]: MANAGED_VALUE };
    store.update("nodes", put(node, ["metadata", "labels"], labels));
    add(store, "Pod", `${AGENTS}-${name}`, {
      namespace: HOME,
      metadata: { ownerReferences: [owner] },
      spec: { nodeName: name, serviceAccountName: AGENT, containers: [{ name: "agent", image: "zonewise" }] },
      status: { phase: "Running" },
    });
  }
  return names;
}

export const uidOf = (store: Store, node: string): string => store.get("nodes", undefined, node)?.metadata.uid ?? "";

/** A node's agent pod, for its token. */
export const agentPod = (store: Store, node: string): { readonly name: string; readonly uid: string | undefined } => {
  const name = `${AGENTS}-${node}`;
  return { name, uid: store.get("pods", HOME, name)?.metadata.uid };
};

/** Reports a boot as the kubelet does. */
export function reportBoot(
  store: Store,
  name: string,
  { ready, bootId }: { readonly ready: boolean; readonly bootId: string },
): void {
  const node = store.get("nodes", undefined, name);
  if (!node) return;
  const status = reportNode(node, { ready: ready ? "True" : "Unknown", bootId, now: Date.now() });
  store.update("nodes", { ...node, status });
}

/** What is drawn of each node. */
export function readNodes(store: Store, names: readonly string[]): DrawnNode[] {
  const pods = store.list("pods").filter(({ metadata }) => metadata.namespace !== HOME);
  return names.map((name) => {
    const node = store.get("nodes", undefined, name) as KubeObject;
    const shadow = store.get(SHADOWS, HOME, shadowName(name));
    return {
      name,
      ready: isTrue(node, "Ready"),
      cordoned: dig(node, "spec", "unschedulable") === true,
      shadow: shadow && {
        spec: dig(shadow, "spec") as ShadowSpec,
        status: (dig(shadow, "status") ?? undefined) as ShadowStatus | undefined,
      },
      pods: pods
        .filter((pod) => dig(pod, "spec", "nodeName") === name)
        .toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))
        .map((pod) => podState(pod)),
    };
  });
}

function podState(pod: KubeObject): DrawnNode["pods"][number] {
  if (pod.metadata.deletionTimestamp) return "terminating";
  return isTrue(pod, "Ready") ? "ready" : "unready";
}
