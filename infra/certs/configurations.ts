/** Decides which webhook configurations are ours and which of them need our CA bundle. */
import type { Resource, WebhookConfiguration } from "../kubernetes/resources.ts";
import { findIssuer, readCertificates } from "./x509.ts";
import type { KeyMaterial } from "./secret.ts";

/** A label on every configuration of the installation in the namespace that it names. */
export const NAMESPACE_LABEL = "grafana.com/namespace";
/** A label, exactly `true`: we maintain the CA bundle. */
const INJECT_LABEL = "grafana.com/inject-rollout-operator-ca";

// https://cert-manager.io/docs/concepts/ca-injector/ and OpenShift's service CA: two writers of one field would
// overwrite each other forever.
const OTHER_INJECTORS = [
  "cert-manager.io/inject-ca-from",
  "cert-manager.io/inject-ca-from-secret",
  "cert-manager.io/inject-apiserver-ca",
  "service.beta.openshift.io/inject-cabundle",
];

export type HookType = "ValidatingWebhook" | "MutatingWebhook";

export interface Listed {
  readonly resource: Resource<WebhookConfiguration>;
  readonly type: HookType;
  readonly configuration: WebhookConfiguration;
}

type JsonPatch = readonly { readonly op: "test" | "add"; readonly path: string; readonly value: string }[];

/** True if we maintain its CA bundle (§7.6): labelled for it, and not annotated for another injector. */
export function isOurConfiguration({ configuration }: Listed, namespace: string): boolean {
  return configuration.metadata?.labels?.[NAMESPACE_LABEL] === namespace && isInjected(configuration);
}

/** True if an installation of ours maintains its CA bundle. */
function isInjected({ metadata }: WebhookConfiguration): boolean {
  const { labels = {}, annotations = {} } = metadata ?? {};
  return labels[INJECT_LABEL] === "true" && OTHER_INJECTORS.every((other) => annotations[other] === undefined);
}

/**
 * The patch that sets this bundle in each entry; undefined if each has it. It fails if the configuration has changed
 * since.
 */
export function planInjection({ configuration }: Listed, caPem: string): JsonPatch | undefined {
  const value = Buffer.from(caPem).toString("base64");
  const additions = (configuration.webhooks ?? []).flatMap(({ clientConfig }, index) =>
    clientConfig.caBundle === value
      ? []
      : [{ op: "add" as const, path: `/webhooks/${index}/clientConfig/caBundle`, value }],
  );
  const test = {
    op: "test" as const,
    path: "/metadata/resourceVersion",
    value: configuration.metadata?.resourceVersion ?? "",
  };
  return additions.length > 0 ? [test, ...additions] : undefined;
}

/** True if an entry trusts the serving pair but not the next pair: its injector lags behind. */
export function lagsBehind({ configuration }: Listed, { serving, next }: KeyMaterial): boolean {
  if (!next) return false;
  return (configuration.webhooks ?? []).some(({ clientConfig: { caBundle } }) => {
    try {
      const cas = readCertificates(Buffer.from(caBundle ?? "", "base64").toString());
      return findIssuer(serving.certificate, cas) !== undefined && findIssuer(next.certificate, cas) === undefined;
    } catch {
      return false;
    }
  });
}

/** The failure policy of one entry of a configuration (§9). */
export interface FailurePolicy {
  readonly type: HookType;
  readonly webhook: string;
  readonly policy: "Fail" | "Ignore";
}

export function failurePolicies(listed: readonly Listed[]): FailurePolicy[] {
  return listed.flatMap(({ type, configuration }) =>
    (configuration.webhooks ?? []).map(({ name, failurePolicy }) => ({
      type,
      webhook: name,
      policy: failurePolicy === "Ignore" ? ("Ignore" as const) : ("Fail" as const),
    })),
  );
}
