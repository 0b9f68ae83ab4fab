/**
 * Finds variables that look like ours but are not known, because a misspelt variable must not go unnoticed; also those
 * that no longer have an effect, and those that Kubernetes has set.
 */
import { countEdits } from "../edit-distance.ts";
import type { Log } from "../log.ts";
import { VARIABLE_ROWS } from "./variables.ts";

/** Prefixes that only we use: an unknown variable with one of them is refused. */
const OWN_PREFIXES = [
  "SERVER_TLS_",
  "SERVER_CLUSTER_VALIDATION_",
  "KUBERNETES_CLIENT_",
  "PODS_CLIENT_",
  "RECONCILE_",
  "USE_ZONE_TRACKER",
  "WEBHOOKS_UPDATE_",
  "ZONE_TRACKER_",
  "ZPDB_",
];

const NAMES = VARIABLE_ROWS.map(([name]) => name);
const KNOWN = new Set(VARIABLE_ROWS.flatMap(([name, { oldName = name }]) => [name, oldName]));

/**
 * The unknown names with a prefix of ours or the original's, each with the nearest known name of the same prefix, if
 * any.
 */
export function findUnknown(
  names: readonly string[],
): { readonly name: string; readonly nearest: string | undefined }[] {
  return names.flatMap((name) => {
    const prefix = KNOWN.has(name) ? undefined : OWN_PREFIXES.find((prefix) => name.startsWith(prefix));
    if (prefix === undefined) return [];
    const alike = NAMES.filter((known) => known.startsWith(prefix));
    const [nearest] = alike.toSorted((one, other) => countEdits(name, one) - countEdits(name, other));
    return [{ name, nearest }];
  });
}

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * The unknown names that are not refused but differ from a known name only by one or two letters after its first word.
 */
export function findMisspelt(env: Environment): { readonly name: string; readonly nearest: string }[] {
  const others = Object.keys(env).filter((name) => env[name] && !KNOWN.has(name) && !isServiceLink(name, env));
  return others.flatMap((name) => {
    const nearest = NAMES.find((known) => firstWord(known) === firstWord(name) && countEdits(name, known) <= 2);
    return nearest === undefined || findUnknown([name]).length > 0 ? [] : [{ name, nearest }];
  });
}

/** Logs one warning with all variables that may be misspelt, if any, and one for each that has no effect any more. */
export function warnOfVariables(env: Environment, log: Log): void {
  const variables = findMisspelt(env);
  if (variables.length > 0)
    log.warn("an unknown variable has nearly the name of a known one: it has no effect", { variables });
  for (const [variable, { hasNoEffect }] of VARIABLE_ROWS)
    if (hasNoEffect && env[variable]) log.warn("this variable has no effect: remove it", { variable });
}

const firstWord = (name: string): string | undefined => name.split("_")[0];

/**
 * Kubernetes sets variables for the Services in a container's namespace: a Service named `server` sets SERVER_PORT to
 * `tcp://10.0.0.1:8001`, which is not our port. Our manifests turn them off (enableServiceLinks); others may not.
 * https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables
 */
const LINK =
  /^(?<service>.+?)_(?:SERVICE_HOST|SERVICE_PORT(?:_.*)?|PORT_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?|(?<port>PORT))$/;
const ADDRESS = /^(?:tcp|udp|sctp):\/\//;

/** True if Kubernetes set this variable: the Service's host variable exists as well, and the port is a URL. */
export function isServiceLink(name: string, env: Environment): boolean {
  const { service, port } = LINK.exec(name)?.groups ?? {};
  return env[`${service}_SERVICE_HOST`] !== undefined && (port === undefined || ADDRESS.test(env[name] ?? ""));
}
