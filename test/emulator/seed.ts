/** What a fresh cluster holds. */
import type { Clock } from "./clock.ts";
import { withDefaults } from "./defaults.ts";
import { timestamp } from "./objects.ts";
import type { Draft } from "./objects.ts";
import type { Store } from "./store.ts";

const NAMESPACES = ["default", "kube-system"];
const ZONES = 3;

/** A node a zone, node-1 in zone-1 and so on, ready. */
export function seed(store: Store, clock: Clock): void {
  const create = (resource: string, object: Draft): unknown => store.create(resource, withDefaults(resource, object));
  for (const name of NAMESPACES) create("namespaces", { apiVersion: "v1", kind: "Namespace", metadata: { name } });
  const time = timestamp(clock.now());
  for (let n = 1; n <= ZONES; n++)
    create("nodes", {
      apiVersion: "v1",
      kind: "Node",
      metadata: { name: `node-${n}`, labels: { "topology.kubernetes.io/zone": `zone-${n}` } },
      spec: {},
      status: {
        conditions: [{ type: "Ready", status: "True", reason: "Simulated", lastHeartbeatTime: time, lastTransitionTime: time }],
        nodeInfo: { kubeletVersion: "" },
      },
    });
}
