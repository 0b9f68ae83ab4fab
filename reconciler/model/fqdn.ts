/**
 * The DNS name of a StatefulSet's pod [0.8]: `<pod>.<serviceName>.<namespace>.svc.<clusterDomain>`.
 * A trailing dot of the cluster domain is kept: it spares the resolver its search list.
 */
export function podFqdn(pod: string, serviceName: string, namespace: string, clusterDomain = "cluster.local."): string {
  return `${pod}.${serviceName}.${namespace}.svc.${clusterDomain}`;
}
