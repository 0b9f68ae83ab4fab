/** How the pods of a StatefulSet want to be told before they are scaled away (§4.6, §4.8). */
import type { StatefulSet } from "../../infra/kubernetes/resources.ts";
import { ANNOTATIONS } from "../model/annotations.ts";
import { checkServiceName, podFqdn, urlOfHost } from "../model/fqdn.ts";
import { readZone } from "../model/zone.ts";

export interface Preparation {
  readonly statefulSet: string;
  readonly namespace: string;
  readonly serviceName: string;
  /** The ordinal of the first pod: `spec.ordinals.start`. */
  readonly firstOrdinal: number;
  /** Scheme, port and path; the pod's name takes the place of its host. */
  readonly url: URL;
}

const LONGEST_PATH = 1024;

/** Anything else would put another host into the URL. */
function isPort(text: string): boolean {
  return /^\d{1,5}$/.test(text) && Number(text) > 0 && Number(text) < 65_536;
}

/** The preparation that a StatefulSet asks for, or what it lacks, in upstream's words. */
export function readPreparation(object: StatefulSet): Preparation | { readonly problem: string } {
  const { name, namespace, serviceName, firstOrdinal } = readZone(object);
  const annotations = object.metadata?.annotations ?? {};
  const port = annotations[ANNOTATIONS.prepareHttpPort] ?? "";
  const path = annotations[ANNOTATIONS.prepareHttpPath] ?? "";
  const problem = problemOfPort(port) ?? problemOfPath(path) ?? problemOfServiceName(serviceName);
  if (problem !== undefined) return { problem };
  const url = new URL(`http://pod:${port}/${path.replace(/^\//, "")}`);
  return { statefulSet: name, namespace, serviceName, firstOrdinal, url };
}

function problemOfPort(port: string): string | undefined {
  if (port === "") return `the ${ANNOTATIONS.prepareHttpPort} annotation is not set or empty.`;
  return isPort(port) ? undefined : `the ${ANNOTATIONS.prepareHttpPort} annotation is no port.`;
}

function problemOfPath(path: string): string | undefined {
  if (path === "") return `the ${ANNOTATIONS.prepareHttpPath} annotation is not set or empty.`;
  return path.length > LONGEST_PATH ? `the ${ANNOTATIONS.prepareHttpPath} annotation is too long.` : undefined;
}

function problemOfServiceName(serviceName: string): string | undefined {
  if (serviceName === "") return "the serviceName is not set or empty.";
  const wrong = checkServiceName(serviceName);
  return wrong && `the ${wrong}.`;
}

/** The URLs of the pods that go when `from` replicas become `to`, the last pod first; one at a time, as they may be very many. */
export function* endpointsOf(
  preparation: Preparation,
  { from, to }: { readonly from: number; readonly to: number },
  clusterDomain: string,
): Generator<string> {
  const { statefulSet, firstOrdinal, url } = preparation;
  for (let ordinal = firstOrdinal + from - 1; ordinal >= firstOrdinal + to; ordinal--)
    yield urlOfHost(url, podFqdn(`${statefulSet}-${ordinal}`, preparation, clusterDomain));
}
