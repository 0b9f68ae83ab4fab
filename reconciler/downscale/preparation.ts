/** The preparation of a StatefulSet's pods for a downscale (§4.6, §4.8). */
import type { PodTargets } from "../../infra/call-pods.ts";
import type { StatefulSet } from "../../infra/kubernetes/resources.ts";
import { ANNOTATIONS } from "../model/annotations.ts";
import { checkServiceName, podUrl } from "../model/fqdn.ts";
import type { OrdinalRange } from "../model/order.ts";
import { readZone } from "../model/zone.ts";

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

export function leavingOrdinals(
  firstOrdinal: number,
  { from, to }: { readonly from: number; readonly to: number },
): OrdinalRange {
  return { start: firstOrdinal + to, end: firstOrdinal + from };
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
