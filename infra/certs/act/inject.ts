/**
 * Injects the CA bundle into the webhook configurations. The order of reads makes concurrent injections safe:
 *
 *   list configurations -> read the Secret -> patch, if the configuration is still the one that was listed
 *
 * So a bundle never replaces a newer one: the injection of the newer one changed the configuration after the list, and
 * the patch fails.
 */
import type { Call, Cluster, Ref } from "../../kubernetes/cluster.ts";
import { absent, hasCode, isSuperseded } from "../../errors.ts";
import {
  mutatingWebhooks,
  secrets,
  validatingWebhooks,
  type Resource,
  type WebhookConfiguration,
} from "../../kubernetes/resources.ts";
import { collect } from "../../kubernetes/collect.ts";
import type { Log } from "../../log.ts";
import { isOurConfiguration, NAMESPACE_LABEL, planInjection, type HookType, type Listed } from "../configurations.ts";
import { readCertificates } from "../x509.ts";

const KINDS: readonly (readonly [HookType, Resource<WebhookConfiguration>])[] = [
  ["ValidatingWebhook", validatingWebhooks],
  ["MutatingWebhook", mutatingWebhooks],
];

/** Attempts of one injection, as configurations may change meanwhile. */
const ROUNDS = 3;

/** Lists the configurations of this namespace: two calls. Rejects with the error of the API server. */
export async function listConfigurations(cluster: Cluster, namespace: string, call?: Call): Promise<readonly Listed[]> {
  const query = { labelSelector: `${NAMESPACE_LABEL}=${namespace}` };
  const lists = KINDS.map(async ([type, resource]) => {
    const found = await collect(cluster.list(resource, query, call));
    return found.map((configuration) => ({ resource, type, configuration }));
  });
  return (await Promise.all(lists)).flat();
}

/** A configuration that did not get the bundle, and the error. */
interface Missed {
  readonly name: string;
  readonly error: unknown;
}

export interface Injection {
  /** Configurations that got the bundle. */
  readonly patched: readonly string[];
  /** Configurations that changed or were deleted after the list: list again. */
  readonly superseded: readonly Missed[];
  readonly failed: readonly Missed[];
}

/** A CA bundle, and the listed configurations that may need it. */
interface Bundle {
  /** Only configurations of this namespace get it. */
  readonly namespace: string;
  readonly listed: readonly Listed[];
  readonly caPem: string;
}

/** Injects the bundle into our configurations that lack it. A failure is reported and does not stop the others. */
export async function injectBundle(
  cluster: Cluster,
  { namespace, listed, caPem }: Bundle,
  call?: Call,
): Promise<Injection> {
  const injection = { patched: [] as string[], superseded: [] as Missed[], failed: [] as Missed[] };
  for (const one of listed.filter((one) => isOurConfiguration(one, namespace))) {
    const patch = planInjection(one, caPem);
    const name = one.configuration.metadata?.name ?? "";
    if (!patch) continue;
    try {
      await cluster.patch(one.resource, { name, type: "json", body: patch }, call);
      injection.patched.push(name);
    } catch (error) {
      // A failed `test` of a JSON patch is 422.
      const outcome = isSuperseded(error) || hasCode(error, "Invalid") ? "superseded" : "failed";
      injection[outcome].push({ name, error });
    }
  }
  return injection;
}

/** Logs the configurations that got the bundle, and warns of the others. */
export function logInjection(log: Log, { patched, failed, superseded }: Injection): void {
  if (patched.length > 0) log.info("webhook configurations were given the CA bundle", { configurations: patched });
  for (const { name, error } of [...failed, ...superseded])
    log.warn("a webhook configuration could not be given the CA bundle", { configuration: name, error });
}

/** The result, with every configuration of this namespace as last listed. */
interface CaInjectionResult extends Injection {
  readonly listed: readonly Listed[];
  /** The expiry of the certificate in the Secret; undefined if there is none or it was not read. */
  readonly expiresAt: Date | undefined;
}

/**
 * Lists the configurations and injects the bundle of the Secret (§7.6): two calls if no configuration is ours, three if
 * each has the bundle. Without a Secret it injects nothing. Rejects if the lists or the Secret cannot be read, or if
 * its bundle is invalid.
 */
export async function injectCaBundles(
  cluster: Cluster,
  { namespace, secretName }: { readonly namespace: string; readonly secretName: string },
  call?: Call,
): Promise<CaInjectionResult> {
  const patched: string[] = [];
  for (let round = 1; ; round++) {
    const listed = await listConfigurations(cluster, namespace, call);
    const isNeeded = listed.some((one) => isOurConfiguration(one, namespace));
    const secret = isNeeded ? await readSecret(cluster, { namespace, name: secretName }, call) : undefined;
    if (!secret) return { expiresAt: undefined, listed, patched, superseded: [], failed: [] };
    const injection = await injectBundle(cluster, { namespace, listed, caPem: secret.caPem }, call);
    patched.push(...injection.patched);
    if (injection.superseded.length === 0 || round === ROUNDS)
      return { ...injection, expiresAt: secret.expiresAt, listed, patched };
  }
}

async function readSecret(cluster: Cluster, secret: Ref, call?: Call) {
  const data = (await cluster.get(secrets, secret, call).catch(absent))?.data ?? {};
  const [caPem = "", certPem = ""] = ["ca", "cert"].map((key) => Buffer.from(data[key] ?? "", "base64").toString());
  if (caPem === "") return undefined;
  readCertificates(caPem);
  return { caPem, expiresAt: expiryOf(certPem) };
}

// The certificate job reports an unreadable certificate; the CA is injected nevertheless.
function expiryOf(certPem: string): Date | undefined {
  try {
    return readCertificates(certPem)[0]?.validToDate;
  } catch {
    return undefined;
  }
}
