/** The whole suite: every scenario in a namespace of its own, a few at a time. */
import { randomBytes } from "node:crypto";
import { connect, type Client, type Kubeconfig } from "./client.ts";
import { del, post } from "./requests.ts";
import { admission } from "./scenarios/admission.ts";
import { customResources } from "./scenarios/custom-resources.ts";
import { evictions, owners } from "./scenarios/evictions.ts";
import { kubelets } from "./scenarios/kubelets.ts";
import { lists } from "./scenarios/lists.ts";
import { objects } from "./scenarios/objects.ts";
import { patches } from "./scenarios/patches.ts";
import { statefulSets } from "./scenarios/statefulsets.ts";
import { play, type Entry, type Scenario } from "./stage.ts";

const SCENARIOS: readonly Scenario[] = [
  ...statefulSets,
  ...kubelets,
  ...evictions,
  ...owners,
  ...objects,
  ...lists,
  ...patches,
  ...customResources,
  ...admission,
];
const AT_ONCE = 6;

/** What each scenario recorded, by its name. */
export type Recording = Readonly<Record<string, readonly Entry[]>>;

/** Plays `scenarios` on the cluster of `kubeconfig`, in namespaces `conf-…` that it deletes again. */
export async function record(kubeconfig: Kubeconfig, scenarios: readonly Scenario[] = SCENARIOS): Promise<Recording> {
  const client = connect(kubeconfig);
  const waiting = [...scenarios];
  const recorded = new Map<string, Entry[]>();
  const worker = async (): Promise<void> => {
    for (let scenario = waiting.shift(); scenario; scenario = waiting.shift())
      recorded.set(scenario.name, await inOwnNamespace(client, scenario));
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  client.close();
  return Object.fromEntries(scenarios.map(({ name }) => [name, recorded.get(name) ?? []]));
}

async function inOwnNamespace(client: Client, scenario: Scenario): Promise<Entry[]> {
  const namespace = `conf-${randomBytes(4).toString("hex")}`;
  await client.call(post("/api/v1/namespaces", { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } }));
  try {
    return await play(client, scenario, namespace);
  } finally {
    await client.call(del(`/api/v1/namespaces/${namespace}`));
  }
}
