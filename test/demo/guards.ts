/** The demonstration's last parts: what the webhooks refuse, in the sentences of their answers. */
import type { Clock } from "../../infra/clock.ts";
import { nodes, statefulSets } from "../../infra/kubernetes/resources.ts";
import type { Cluster } from "../../infra/kubernetes/cluster.ts";
import { connect } from "../cluster/conformance/client.ts";
import type { Emulator } from "../emulator/index.ts";
import { formatSeconds } from "./picture.ts";
import type { Screen } from "./screen.ts";

interface GuardsOptions {
  readonly emulator: Emulator;
  readonly cluster: Cluster;
  readonly clock: Clock;
  readonly screen: Screen;
  readonly namespace: string;
  readonly stop: AbortSignal;
}

const NODE = "node-1";
/** Milliseconds until a drain tries again, and until it gives up. */
const AGAIN_MS = 250;
const TIMEOUT_MS = 60_000;

interface Refusal {
  readonly code?: number;
  readonly message?: string;
}

/**
 * Drains a node as `kubectl drain` does, and asks for a pod of another zone meanwhile. True if the node is drained and
 * the other pod was refused.
 */
export async function drainNode({
  emulator,
  cluster,
  clock,
  screen,
  namespace,
  stop,
}: GuardsOptions): Promise<boolean> {
  const client = connect(emulator.kubeconfig());
  const evict = async (name: string): Promise<Refusal> => {
    const path = `/api/v1/namespaces/${namespace}/pods/${name}/eviction`;
    const body = { apiVersion: "policy/v1", kind: "Eviction", metadata: { name, namespace } };
    const { status, body: answer } = await client.call({ method: "POST", path, body });
    return status === 201 ? {} : (answer as Refusal);
  };
  const namesOn = (node: string): string[] =>
    emulator.store
      .list("pods", namespace)
      .filter(({ spec }) => (spec as { nodeName?: string }).nodeName === node)
      .map(({ metadata }) => metadata.name);
  const [other = ""] = namesOn("node-2");
  const names = namesOn(NODE);
  const startedAt = clock.monotonic();
  screen.print(`Draining ${NODE} under the sample's disruption budget: its ${names.length} pods go one at a time.`);
  await cordon(cluster, true);
  let refusals = 0;
  let isGuarded = false;
  for (const name of names) {
    for (let refusal = await evict(name); refusal.message !== undefined; refusal = await evict(name)) {
      if (stop.aborted || clock.monotonic() - startedAt > TIMEOUT_MS) return false;
      if (refusals++ === 0) screen.print(`  ${name}, of the same zone: ${refusal.message}`);
      await clock.sleep(AGAIN_MS, stop);
    }
    // On a slow machine the first pod may be back already: then this one may go, too.
    const { message } = isGuarded ? {} : await evict(other);
    if (isGuarded || message === undefined) continue;
    isGuarded = true;
    screen.print(`  ${other}, of another zone: ${message}`);
  }
  await cordon(cluster, false);
  client.close();
  screen.print(
    `Drained ${NODE} in ${formatSeconds(clock.monotonic() - startedAt)}: ${names.length} pods evicted; ${refusals + 1} evictions were refused for the time being.`,
  );
  return isGuarded;
}

const cordon = (cluster: Cluster, unschedulable: boolean): Promise<string> =>
  cluster.patch(nodes, { name: NODE, type: "merge", body: { spec: { unschedulable } } });

/** Labels a zone, and scales it down as `kubectl scale` does. True if that was refused. */
export async function scaleDownLabelled(
  { emulator, cluster, screen, namespace }: GuardsOptions,
  zone: string,
  replicas: number,
): Promise<boolean> {
  const label = (value: string | null): Promise<string> =>
    cluster.patch(statefulSets, {
      namespace,
      name: zone,
      type: "merge",
      body: { metadata: { labels: { "grafana.com/no-downscale": value } } },
    });
  await label("true");
  screen.print(`Scaling ${zone} down to ${replicas} replicas, which has the label grafana.com/no-downscale=true.`);
  const client = connect(emulator.kubeconfig());
  const path = `/apis/apps/v1/namespaces/${namespace}/statefulsets/${zone}/scale`;
  const { body, status } = await client.call({
    method: "PATCH",
    path,
    type: "application/merge-patch+json",
    body: { spec: { replicas } },
  });
  client.close();
  screen.print(`  ${status === 200 ? "scaled" : (body as Refusal).message}`);
  await label(null);
  return status !== 200;
}
