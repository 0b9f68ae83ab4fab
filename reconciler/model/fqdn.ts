/**
 * The addresses of a StatefulSet's pods: every request to a pod, from the tick and from the webhook, has its URL from
 * `podUrl`.
 */
import type { Zone } from "./zone.ts";

/**
 * The DNS name of a StatefulSet's pod (§0.8): `<pod>.<serviceName>.<namespace>.svc.<clusterDomain>`.
 * A trailing dot of the cluster domain is kept: it spares the resolver its search list.
 */
export function podFqdn(
  pod: string,
  { serviceName, namespace }: Pick<Zone, "serviceName" | "namespace">,
  clusterDomain = "cluster.local.",
): string {
  return `${pod}.${serviceName}.${namespace}.svc.${clusterDomain}`;
}

/** RFC 1123. */
const DNS_LABEL = /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/;
const MAX_SHOWN_LENGTH = 100;

/**
 * The problem of a `spec.serviceName`, which the API server does not check: anything but a DNS label may name another
 * host.
 */
export function checkServiceName(serviceName: string): string | undefined {
  if (DNS_LABEL.test(serviceName)) return undefined;
  return `serviceName ${JSON.stringify(serviceName.slice(0, MAX_SHOWN_LENGTH))} is not a DNS label`;
}

/**
 * The URL of a pod: `template` with the pod's DNS name in place of its host. Throws if the finished URL has another
 * host, port or user.
 */
export function podUrl(
  template: URL,
  pod: string,
  {
    serviceName,
    namespace,
    clusterDomain,
  }: Pick<Zone, "serviceName" | "namespace"> & { readonly clusterDomain: string },
): string {
  return urlOfHost(template, podFqdn(pod, { serviceName, namespace }, clusterDomain));
}

function urlOfHost(template: URL, host: string): string {
  const url = new URL(template);
  url.hostname = host;
  const isIntended =
    url.hostname === host.toLowerCase() &&
    url.port === template.port &&
    url.username === template.username &&
    url.password === template.password;
  if (!isIntended)
    throw new Error(`${JSON.stringify(host.slice(0, MAX_SHOWN_LENGTH))} is not a host that a URL can have`);
  return url.href;
}
