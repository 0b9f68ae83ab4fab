/** The whole suite: each scenario in a namespace of its own, a few in parallel. */
import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { visitEach } from "../../../infra/slots.ts";
import { connect, type Client, type Kubeconfig } from "./client.ts";
import { at, del, get, post } from "./requests.ts";
import { admission } from "./scenarios/admission.ts";
import { customResources } from "./scenarios/custom-resources.ts";
import { evictions, owners } from "./scenarios/evictions.ts";
import { kubelets } from "./scenarios/kubelets.ts";
import { lists } from "./scenarios/lists.ts";
import { objects } from "./scenarios/objects.ts";
import { patches } from "./scenarios/patches.ts";
import { statefulSets } from "./scenarios/statefulsets.ts";
import { SOME_TIME_MS } from "../stage/until.ts";
import { type Entry, runScenario, type Scenario } from "./stage.ts";

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
    await settle(client, namespace);
    return await runScenario(client, scenario, namespace);
  } finally {
    await client.call(del(`/api/v1/namespaces/${namespace}`));
  }
}

/**
 * Waits for the ConfigMap that a real cluster creates in every namespace, so that it does not disturb the
 * scenario.
 */
async function settle(client: Client, namespace: string): Promise<void> {
  const hasRootCa = async (candidate: string): Promise<boolean> => {
    const { status } = await client.call(get(`${at(candidate, "configmaps")}/kube-root-ca.crt`));
    return status === 200;
  };
  if (!(await hasRootCa("default"))) return;
  for (const end = performance.now() + SOME_TIME_MS; performance.now() < end; await sleep(20))
    if (await hasRootCa(namespace)) return;
  throw new Error(`the cluster does not publish its CA in ${namespace}`);
}
