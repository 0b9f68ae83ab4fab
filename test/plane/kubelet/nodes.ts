/** The simulated nodes, one a zone, and the first report of each node that has none. */
import type { V1Node } from "@kubernetes/client-node";
import type { Json } from "../../../infra/kubernetes/resources.ts";
import type { Admin } from "../../cluster/stage/client.ts";
import { timestamp } from "../../emulator/objects.ts";
import { REAL } from "../../emulator/controllers/schedule.ts";

export type Node = Json<V1Node>;

const SIZE = { cpu: "64", memory: "256Gi", pods: "1000" };
const NOT_READY = "node.kubernetes.io/not-ready";

/** Creates `node-1` to `node-3`, in `zone-1` to `zone-3`, unless they are there. */
export async function createNodes({ call }: Admin): Promise<void> {
  for (const n of [1, 2, 3]) {
    const metadata = { name: `node-${n}`, labels: { "topology.kubernetes.io/zone": `zone-${n}` } };
    try {
      await call("POST", "/api/v1/nodes", { apiVersion: "v1", kind: "Node", metadata });
    } catch (error) {
      if (!(error instanceof Error && error.cause === 409)) throw error;
    }
  }
}

export function isReal(node: Node): boolean {
  return node.metadata?.labels?.[REAL] === "true";
}

/**
 * Reports a new node as Ready and takes the API server's taint off it. Afterwards its status belongs to the
 * tests.
 */
export async function adoptNode({ call }: Admin, node: Node): Promise<void> {
  if (isReal(node) || node.status?.conditions?.length) return;
  const path = `/api/v1/nodes/${node.metadata?.name}`;
  const now = timestamp(Date.now());
  const ready = { type: "Ready", status: "True", reason: "Simulated", lastTransitionTime: now, lastHeartbeatTime: now };
  await call("PATCH", `${path}/status`, { status: { conditions: [ready], capacity: SIZE, allocatable: SIZE } });
  await call("PATCH", path, { spec: { taints: (node.spec?.taints ?? []).filter(({ key }) => key !== NOT_READY) } });
}
