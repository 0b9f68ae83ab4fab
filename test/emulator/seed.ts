/** What a fresh cluster holds. */
import type { Clock } from "./clock.ts";
import { withDefaults } from "./defaults.ts";
import { timestamp } from "./objects.ts";
import type { Draft } from "./objects.ts";
import type { Store } from "./store.ts";

const NAMESPACES = ["default", "kube-system"];
const ZONES = 3;

/** Nodes node-1.. in zones zone-1 to zone-3 in turn, ready. */
export function seed(store: Store, clock: Clock, nodes: number): void {
  const create = (resource: string, object: Draft): unknown => store.create(resource, withDefaults(resource, object));
  for (const name of NAMESPACES) create("namespaces", { apiVersion: "v1", kind: "Namespace", metadata: { name } });
  const time = timestamp(clock.now());
  for (let n = 1; n <= nodes; n++)
    create("nodes", {
      apiVersion: "v1",
      kind: "Node",
      metadata: { name: `node-${n}`, labels: { "topology.kubernetes.io/zone": `zone-${((n - 1) % ZONES) + 1}` } },
      spec: {},
      status: {
        conditions: [{ type: "Ready", status: "True", reason: "Simulated", lastHeartbeatTime: time, lastTransitionTime: time }],
        nodeInfo: { kubeletVersion: "" },
      },
    });
}
