/**
 * Gives the CA bundle to the agents, in a ConfigMap, and to the CustomResourceDefinition of the objects that we
 * convert. The Secret also holds the key, which agents must not have.
 */
import type { Cluster } from "../../kubernetes/cluster.ts";
import { absent } from "../../errors.ts";
import { configMaps, type Definition, definitions } from "../../kubernetes/resources.ts";
import { NAMESPACE_LABEL } from "../configurations.ts";
import type { JobInput } from "./job.ts";

/** In the namespace of the agents. */
export const CA_CONFIG_MAP = "zonewise-node-api-ca";
const KEY = "ca.crt";
const DEFINITION = "bottlerocketshadows.brupop.bottlerocket.aws";

/**
 * Resolves with true if all have the bundle. An object that another writer has changed meanwhile, or that may not be
 * written, is left to the next step.
 */
export async function publishCa(
  caPem: string,
  { cluster, log, namespace }: Pick<JobInput, "cluster" | "log" | "namespace">,
): Promise<boolean> {
  try {
    await writeConfigMap(cluster, namespace, caPem);
    await writeDefinition(cluster, namespace, caPem);
    return true;
  } catch (error) {
    log.warn("the CA bundle of the node API could not be published", { error });
    return false;
  }
}

async function writeConfigMap(cluster: Cluster, namespace: string, caPem: string): Promise<void> {
  const name = CA_CONFIG_MAP;
  const found = await cluster.get(configMaps, { namespace, name }).catch(absent);
  if (found?.data?.[KEY] === caPem) return;
  const data = { ...found?.data, [KEY]: caPem };
  if (found) await cluster.replace(configMaps, { namespace, name, body: { ...found, data } });
  else
    await cluster.create(configMaps, {
      namespace,
      body: { apiVersion: "v1", kind: "ConfigMap", metadata: { name, namespace }, data },
    });
}

async function writeDefinition(cluster: Cluster, namespace: string, caPem: string): Promise<void> {
  const name = DEFINITION;
  const found = await cluster.get(definitions, { name }).catch(absent);
  const caBundle = Buffer.from(caPem).toString("base64");
  if (!found || !lacksBundle(found, namespace, caBundle)) return;
  const resourceVersion = found.metadata?.resourceVersion;
  const body = { metadata: { resourceVersion }, spec: { conversion: { webhook: { clientConfig: { caBundle } } } } };
  await cluster.patch(definitions, { name, type: "merge", body });
}

/** False also for a definition that names another namespace, or converts nothing: it is left alone. */
function lacksBundle({ metadata, spec }: Definition, namespace: string, caBundle: string): boolean {
  const clientConfig = spec?.conversion?.webhook?.clientConfig;
  const isOurs = metadata?.labels?.[NAMESPACE_LABEL] === namespace;
  return isOurs && clientConfig !== undefined && clientConfig.caBundle !== caBundle;
}
