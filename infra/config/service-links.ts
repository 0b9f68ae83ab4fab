/**
 * The variables by which Kubernetes tells a container of the Services in its namespace: a Service named `server` gives SERVER_PORT the value
 * `tcp://10.0.0.1:8001`, which is no port of ours. Our manifests turn them off (enableServiceLinks); other people's may not.
 * https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables
 */
const LINK = /^(?<service>.+?)_(?:SERVICE_HOST|SERVICE_PORT(?:_.*)?|PORT_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?|(?<port>PORT))$/;
const ADDRESS = /^(?:tcp|udp|sctp):\/\//;

/** True if Kubernetes made this variable: its Service's host is there as well, and the port is an address. */
export function isServiceLink(name: string, env: Readonly<Record<string, string | undefined>>): boolean {
  const { service, port } = LINK.exec(name)?.groups ?? {};
  return env[`${service}_SERVICE_HOST`] !== undefined && (port === undefined || ADDRESS.test(env[name] ?? ""));
}
