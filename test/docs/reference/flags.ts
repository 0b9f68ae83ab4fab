/** The flags of rollout-operator, with their defaults, and why one has no variable here. */
const NO_CLUSTER = "none: API servers send no `X-Cluster` header; `WEBHOOK_AUDIENCE` tells callers apart";

const NO_ELECTION =
  "none: every replica of the functions answers, and the reconciler's runs have their Lease (`LEASE_NAME`)";

/** A flag's variable has the same words: `-server-tls.port` is `SERVER_TLS_PORT`. */
export const ORIGINAL_FLAGS: readonly (readonly [flag: string, theirs: string, none?: string])[] = [
  ["log.format", "logfmt"],
  ["log.level", "debug"],
  ["server.port", "8001"],
  ["kubernetes.api-url", ""],
  ["kubernetes.config-file", ""],
  ["kubernetes.client-timeout", "5m"],
  ["kubernetes.client-qps", "5"],
  ["kubernetes.client-burst", "10"],
  ["pods.client-timeout", "5s"],
  ["kubernetes.cluster-domain", "cluster.local."],
  ["kubernetes.namespace", ""],
  ["reconcile.interval", "5s"],
  ["server-tls.enabled", "false", "none: the webhook server always serves TLS; behind Knative a function never does"],
  ["server-tls.port", "8443"],
  ["server-tls.cert-file", ""],
  ["server-tls.key-file", ""],
  ["server-tls.request-timeout", "10s"],
  ["server-tls.self-signed-cert.enabled", "true"],
  ["server-tls.self-signed-cert.secret-name", "rollout-operator-self-signed-certificate"],
  ["server-tls.self-signed-cert.dns-name", ""],
  ["server-tls.self-signed-cert.org", "Grafana Labs"],
  ["server-tls.self-signed-cert.expiration", "365d"],
  ["webhooks.update-ca-bundle", "true"],
  ["use-zone-tracker", "false"],
  ["zone-tracker.config-map-name", "rollout-operator-zone-tracker"],
  ["zpdb.pod-ready-annotation-patch-timeout", "5s", "none: `grafana.com/ready-time` is not written"],
  ["kubernetes.pod-name", "`POD_NAME`, or the host's name", "none: `POD_NAME` names the process"],
  ["leader-election.enabled", "false", NO_ELECTION],
  ["leader-election.lease-name", "rollout-operator", NO_ELECTION],
  ["leader-election.lease-duration", "15s", NO_ELECTION],
  ["leader-election.renew-deadline", "10s", NO_ELECTION],
  ["leader-election.retry-period", "2s", NO_ELECTION],
  ["server.cluster-validation.http.enabled", "false", NO_CLUSTER],
  ["server.cluster-validation.http.soft-validation", "false", NO_CLUSTER],
  ["server.cluster-validation.http.excluded-paths", "", NO_CLUSTER],
  ["server.cluster-validation.http.excluded-user-agents", "", NO_CLUSTER],
];

/** The name of the variable with the words of a flag. */
export const variableOf = (flag: string): string => flag.toUpperCase().replaceAll(/[.-]/g, "_");
