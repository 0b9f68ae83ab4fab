/**
 * Kubernetes sets variables for the Services in a container's namespace: a Service named `server` sets SERVER_PORT to
 * `tcp://10.0.0.1:8001`, which is not our port. Our manifests turn them off (enableServiceLinks); others may not.
 * https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables
 */
const LINK =
  /^(?<service>.+?)_(?:SERVICE_HOST|SERVICE_PORT(?:_.*)?|PORT_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?|(?<port>PORT))$/;
const ADDRESS = /^(?:tcp|udp|sctp):\/\//;

/** True if Kubernetes set this variable: the Service's host variable exists as well, and the port is a URL. */
export function isServiceLink(name: string, env: Readonly<Record<string, string | undefined>>): boolean {
  const { service, port } = LINK.exec(name)?.groups ?? {};
  return env[`${service}_SERVICE_HOST`] !== undefined && (port === undefined || ADDRESS.test(env[name] ?? ""));
}
