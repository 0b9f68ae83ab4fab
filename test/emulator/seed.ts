/** The objects of a new cluster. */
import type { Clock } from "./clock.ts";
import { withDefaults } from "./defaults.ts";
import { timestamp } from "./objects.ts";
import type { Store } from "./store.ts";
import { make } from "../builders/objects.ts";

/** Creates two namespaces, and a ready node in each of three zones: node-1 in zone-1 and so on. */
export function seedCluster(store: Store, clock: Clock): void {
  for (const name of ["default", "kube-system"])
    store.create("namespaces", withDefaults("namespaces", make("Namespace", name)));
  const time = timestamp(clock.now());
  const ready = {
    type: "Ready",
    status: "True",
    reason: "Simulated",
    lastHeartbeatTime: time,
    lastTransitionTime: time,
  };
  const status = { conditions: [ready], nodeInfo: { kubeletVersion: "" } };
  for (const n of [1, 2, 3]) {
    const metadata = { name: `node-${n}`, labels: { "topology.kubernetes.io/zone": `zone-${n}` } };
    store.create("nodes", { apiVersion: "v1", kind: "Node", metadata, spec: {}, status });
  }
}
