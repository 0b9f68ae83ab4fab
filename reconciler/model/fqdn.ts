/** The addresses of a StatefulSet's pods: every request to a pod, from the tick and from the webhook. */
import type { Zone } from "./zone.ts";

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

interface PodDomain extends Pick<Zone, "serviceName" | "namespace"> {
  /** A dot at its end is kept: it spares the resolver its search list. */
  readonly clusterDomain: string;
}

/**
 * The URL of a pod: `template` with the pod's DNS name in place of its host (§0.8). Throws if the finished URL has another
 * host, port or user.
 */
export function podUrl(template: URL, pod: string, { serviceName, namespace, clusterDomain }: PodDomain): string {
  const host = `${pod}.${serviceName}.${namespace}.svc.${clusterDomain}`;
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
