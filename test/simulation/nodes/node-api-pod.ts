/** The pod of a node API with one replica, as the controllers of its Deployment make it again wherever it fits. */
import { dig, isTrue } from "../../emulator/objects.ts";
import type { Store } from "../../emulator/store.ts";
import { NAMESPACE } from "../names.ts";
import type { Schedule } from "../schedule.ts";
import { type Bound, POOL } from "./bound.ts";

export const NODE_API = "brupop-apiserver";
const LABELS = { "brupop.bottlerocket.aws/component": "apiserver" };
const ZONE_LABEL = "topology.kubernetes.io/zone";
const REPLACED_MS = 1000;

export function keepNodeApiPod(
  store: Store,
  schedule: Pick<Schedule, "after">,
  { zone, bound }: { readonly zone: string; readonly bound: Bound | undefined },
): void {
  const set = store.create("replicasets.apps", {
    apiVersion: "apps/v1",
    kind: "ReplicaSet",
    metadata: { name: NODE_API, namespace: NAMESPACE },
    spec: { replicas: 1, selector: { matchLabels: LABELS } },
    status: { replicas: 1, readyReplicas: 0 },
  });
  const create = (): void => {
    const owner = { apiVersion: "apps/v1", kind: "ReplicaSet", name: NODE_API, uid: set.metadata.uid };
    store.create("pods", {
      apiVersion: "v1",
      kind: "Pod",
      metadata: {
        name: NODE_API,
        namespace: NAMESPACE,
        labels: LABELS,
        ownerReferences: [{ ...owner, controller: true }],
      },
      spec: {
        nodeSelector: { [ZONE_LABEL]: zone, ...(bound && { [POOL]: "true" }) },
        containers: [{ name: "main", image: "api" }],
      },
      status: { phase: "Pending" },
    });
  };
  const tellReady = (readyReplicas: number): void => {
    const stored = store.get("replicasets.apps", NAMESPACE, NODE_API);
    if (!stored || dig(stored, "status", "readyReplicas") === readyReplicas) return;
    store.update("replicasets.apps", { ...stored, status: { replicas: 1, readyReplicas } });
  };
  store.subscribe(({ type, resource, object }) => {
    if (resource !== "pods" || object.metadata.name !== NODE_API) return;
    tellReady(type !== "DELETED" && isTrue(object, "Ready") ? 1 : 0);
    if (type === "DELETED") schedule.after(REPLACED_MS, create);
  });
  create();
}
