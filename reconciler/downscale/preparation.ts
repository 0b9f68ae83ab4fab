/** How the pods of a StatefulSet want to be told before they are scaled away (§4.6, §4.8). */
import type { StatefulSet } from "../../infra/kubernetes/resources.ts";
import { ANNOTATIONS } from "../model/annotations.ts";
import { checkServiceName, podFqdn, urlOfHost } from "../model/fqdn.ts";

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
export function readPreparation({ metadata, spec }: StatefulSet): Preparation | { readonly problem: string } {
  const port = metadata?.annotations?.[ANNOTATIONS.prepareHttpPort];
  if (!port) return { problem: `the ${ANNOTATIONS.prepareHttpPort} annotation is not set or empty.` };
  if (!isPort(port)) return { problem: `the ${ANNOTATIONS.prepareHttpPort} annotation is no port.` };
  const path = metadata.annotations?.[ANNOTATIONS.prepareHttpPath];
  if (!path) return { problem: `the ${ANNOTATIONS.prepareHttpPath} annotation is not set or empty.` };
  if (path.length > LONGEST_PATH) return { problem: `the ${ANNOTATIONS.prepareHttpPath} annotation is too long.` };
  if (!spec?.serviceName) return { problem: "the serviceName is not set or empty." };
  const wrong = checkServiceName(spec.serviceName);
  if (wrong) return { problem: `the ${wrong}.` };
  const { name = "", namespace = "" } = metadata;
  return {
    statefulSet: name,
    namespace,
    serviceName: spec.serviceName,
    firstOrdinal: spec.ordinals?.start ?? 0,
    url: new URL(`http://pod:${port}/${path.replace(/^\//, "")}`),
  };
}

/** The URLs of the pods that go when `from` replicas become `to`, the last pod first; one at a time, as they may be very many. */
export function* endpointsOf(preparation: Preparation, from: number, to: number, clusterDomain: string): Generator<string> {
  const { statefulSet, firstOrdinal, url } = preparation;
  for (let ordinal = firstOrdinal + from - 1; ordinal >= firstOrdinal + to; ordinal--)
    yield urlOfHost(url, podFqdn(`${statefulSet}-${ordinal}`, preparation, clusterDomain));
}
