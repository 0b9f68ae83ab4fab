/** The whole suite: each scenario in a namespace of its own, a few in parallel. */
import { randomBytes } from "node:crypto";
import { visitEach } from "../../../infra/slots.ts";
import { connect, type Client, type Kubeconfig } from "./client.ts";
import { del, post } from "./requests.ts";
import { admission } from "./scenarios/admission.ts";
import { customResources } from "./scenarios/custom-resources.ts";
import { lists } from "./scenarios/lists.ts";
import { objects } from "./scenarios/objects.ts";
import { patches } from "./scenarios/patches.ts";
import { statefulSets } from "./scenarios/statefulsets.ts";
import { type Entry, hasRootCertificate, runScenario, type Scenario, untilPublished } from "./stage.ts";

const SCENARIOS: readonly Scenario[] = [
  ...statefulSets,
  ...objects,
  ...lists,
  ...patches,
  ...customResources,
  ...admission,
];
const AT_ONCE = 6;

/** The scenarios' records, by name. */
export type Recording = Readonly<Record<string, readonly Entry[]>>;

/** Runs `scenarios` on the cluster of `kubeconfig`, in namespaces `conf-…` that it deletes afterwards. */
export async function record(kubeconfig: Kubeconfig, scenarios: readonly Scenario[] = SCENARIOS): Promise<Recording> {
  const client = connect(kubeconfig);
  const recorded = new Map<string, Entry[]>();
  await visitEach(scenarios, { atOnce: AT_ONCE }, async (scenario) => {
    recorded.set(scenario.name, await inOwnNamespace(client, scenario));
  });
  client.close();
  return Object.fromEntries(scenarios.map(({ name }) => [name, recorded.get(name) ?? []]));
}

async function inOwnNamespace(client: Client, scenario: Scenario): Promise<Entry[]> {
  const namespace = `conf-${randomBytes(4).toString("hex")}`;
  await client.call(post("/api/v1/namespaces", { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } }));
  try {
    if (await hasRootCertificate(client, "default")) await untilPublished(client, namespace);
    return await runScenario(client, scenario, namespace);
  } finally {
    await client.call(del(`/api/v1/namespaces/${namespace}`));
  }
}
