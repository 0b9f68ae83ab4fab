/**
 * The preparation of a StatefulSet's pods for a downscale (§4.6, §4.8), and the addresses of pods: every request to a
 * pod, from the tick and from the webhook, goes to one of these.
 */
import type { PodTargets } from "../../infra/call-pods.ts";
import type { StatefulSet } from "../../infra/kubernetes/resources.ts";
import { ANNOTATIONS } from "../model/annotations.ts";
import type { OrdinalRange } from "../model/order.ts";
import { readZone, type Zone } from "../model/zone.ts";

export interface Preparation {
  readonly statefulSet: string;
  readonly namespace: string;
  readonly serviceName: string;
  /** Scheme, port and path; each pod's host name replaces the host. */
  readonly url: URL;
}

const MAX_PATH_LENGTH = 1024;

/** Other text could change the host of the URL. */
function isPort(text: string): boolean {
  return /^\d{1,5}$/.test(text) && Number(text) > 0 && Number(text) < 65_536;
}

/** The preparation that the StatefulSet's annotations define, or their problem in the original's words. */
export function readPreparation(object: StatefulSet): Preparation | { readonly problem: string } {
  const { name, namespace, serviceName } = readZone(object);
  const annotations = object.metadata?.annotations ?? {};
  const port = annotations[ANNOTATIONS.prepareHttpPort] ?? "";
  const path = annotations[ANNOTATIONS.prepareHttpPath] ?? "";
  const problem = problemOfPort(port) ?? problemOfPath(path) ?? problemOfServiceName(serviceName);
  if (problem !== undefined) return { problem };
  const url = new URL(`http://pod:${port}/${path.replace(/^\/+/, "")}`);
  return { statefulSet: name, namespace, serviceName, url };
}

function problemOfPort(port: string): string | undefined {
  if (port === "") return `the ${ANNOTATIONS.prepareHttpPort} annotation is not set or empty.`;
  return isPort(port) ? undefined : `the ${ANNOTATIONS.prepareHttpPort} annotation is not a port.`;
}

function problemOfPath(path: string): string | undefined {
  if (path === "") return `the ${ANNOTATIONS.prepareHttpPath} annotation is not set or empty.`;
  return path.length > MAX_PATH_LENGTH ? `the ${ANNOTATIONS.prepareHttpPath} annotation is too long.` : undefined;
}

function problemOfServiceName(serviceName: string): string | undefined {
  if (serviceName === "") return "the serviceName is not set or empty.";
  const wrong = checkServiceName(serviceName);
  return wrong && `the ${wrong}.`;
}

/** The URLs of these pods, the last one first. */
export function endpointsOf(preparation: Preparation, { start, end }: OrdinalRange, clusterDomain: string): PodTargets {
  const { statefulSet, url } = preparation;
  const dns = { ...preparation, clusterDomain };
  return {
    count: end - start,
    *[Symbol.iterator]() {
      for (let ordinal = end - 1; ordinal >= start; ordinal--)
        yield { url: podUrl(url, `${statefulSet}-${ordinal}`, dns) };
    },
  };
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
