/** Webhook configurations: which of them are ours, whom they trust, and what has to change. */
import type { Resource, WebhookConfiguration } from "../kubernetes/resources.ts";
import { findIssuer, readCertificates } from "./x509.ts";
import type { KeyMaterial } from "./secret.ts";

/** On every configuration that belongs to the installation in the namespace that it names. */
export const NAMESPACE_LABEL = "grafana.com/namespace";
/** Exactly `true`, beside the other: its CA bundle is ours to keep. */
const INJECT_LABEL = "grafana.com/inject-rollout-operator-ca";

// https://cert-manager.io/docs/concepts/ca-injector/ and OpenShift's service CA: two writers of one field would take turns forever.
const OTHER_INJECTORS = [
  "cert-manager.io/inject-ca-from",
  "cert-manager.io/inject-ca-from-secret",
  "cert-manager.io/inject-apiserver-ca",
  "service.beta.openshift.io/inject-cabundle",
];

export type HookType = "ValidatingWebhook" | "MutatingWebhook";

/** A configuration as it was listed. */
export interface Listed {
  readonly resource: Resource<WebhookConfiguration>;
  readonly type: HookType;
  readonly configuration: WebhookConfiguration;
}

export type JsonPatch = readonly { readonly op: "test" | "add"; readonly path: string; readonly value: string }[];

/** True if its CA bundle is ours to keep (§7.6): labelled for it, and no other injector is asked for. */
export function isOurs({ configuration: { metadata } }: Listed, namespace: string): boolean {
  const { labels = {}, annotations = {} } = metadata ?? {};
  const isLabelled = labels[INJECT_LABEL] === "true" && labels[NAMESPACE_LABEL] === namespace;
  return isLabelled && OTHER_INJECTORS.every((annotation) => annotations[annotation] === undefined);
}

/** The patch after which each entry has this bundle; undefined if each has it. It fails if the configuration has changed since. */
export function planInjection({ configuration }: Listed, caPem: string): JsonPatch | undefined {
  const value = Buffer.from(caPem).toString("base64");
  const additions = (configuration.webhooks ?? []).flatMap(({ clientConfig }, index) =>
    clientConfig.caBundle === value ? [] : [{ op: "add" as const, path: `/webhooks/${index}/clientConfig/caBundle`, value }],
  );
  const test = { op: "test" as const, path: "/metadata/resourceVersion", value: configuration.metadata?.resourceVersion ?? "" };
  return additions.length > 0 ? [test, ...additions] : undefined;
}

/** True if an entry would refuse the waiting pair though it accepts the serving one: the injector of its bundle has not caught up. */
export function lagsBehind({ configuration }: Listed, { serving, next }: KeyMaterial): boolean {
  if (!next) return false;
  return (configuration.webhooks ?? []).some(({ clientConfig: { caBundle } }) => {
    try {
      const cas = readCertificates(Buffer.from(caBundle ?? "", "base64").toString());
      return findIssuer(serving.chain, cas) !== undefined && findIssuer(next.chain, cas) === undefined;
    } catch {
      return false;
    }
  });
}

/** What is in force for one entry of a configuration (§9). */
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
