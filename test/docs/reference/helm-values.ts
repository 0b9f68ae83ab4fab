/** What docs/reference/helm-values.md says of each value of the chart; the generator names a missing one. */

/** By section: each value with its meaning. Of a value that the schema refuses, the schema's sentence follows. */
export const VALUE_TEXTS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "All objects": {
    "global.commonLabels": "Labels on every object. Labels of ours keep their values",
    nameOverride: "",
    fullnameOverride: "",
    "service.name":
      "The Service of the functions, for which the certificate is made. After the original's chart it may be `RELEASE-rollout-operator` ([migration](../migrate/rollout-operator.md#helm))",
    "crds.enabled":
      "`helm install` creates missing definitions. Better apply them yourself and use `--skip-crds`: [Helm 4 overwrites some](../start/install.md#with-helm). Upgrades and removals leave them alone",
  },
  "All pods": {
    "image.registry":
      "The registry, put in front of `image.repository` unless that begins with a host of its own (`registry.example/team/zonewise`)",
    "image.repository":
      "The image that you [built and pushed](../start/install.md#build-the-image), with or without its registry",
    "image.tag": "Its tag, also with a digest (`1.0.0@sha256:…`); the chart's `appVersion` if it is empty",
    "image.pullPolicy":
      "`imagePullPolicy`; the API server's default if it is empty: `Always` for `latest`, else `IfNotPresent`",
    imagePullSecrets: "As in a pod",
    "serviceAccount.create":
      "Whether the three ServiceAccounts are created. With `false`, make them yourself under the same names",
    "serviceAccount.annotations": "Annotations of all three",
    "serviceAccount.name": "",
    hostAliases: "As in a pod",
    hostNetwork:
      "Pods use the node's network, for API servers that cannot reach pods. Each replica of the functions then needs a node of its own, and one more during a rollout",
    podAnnotations: "Annotations of the pods",
    podLabels: "Labels of the pods. Labels of ours keep their values",
    podSecurityContext: "As in a pod. `fsGroup` is for the functions alone, which read the certificate",
    securityContext: "As in a container",
    nodeSelector: "As in a pod",
    tolerations: "As in a pod",
    affinity: "As in a pod. Replaces the default, by which the functions prefer different nodes and zones",
    priorityClassName: "As in a pod",
    extraArgs: "",
    extraEnv:
      "[Variables](variables.md) of all processes; each ignores what does not concern it. Yours replaces ours of the same name",
    extraEnvFrom: "`envFrom` of all containers",
  },
  "The functions": {
    replicas: "How many run; at least 1",
    revisionHistoryLimit: "As in a Deployment",
    minReadySeconds: "As in a Deployment",
    annotations: "Annotations of the Deployment",
    topologySpreadConstraints: "As in a pod; without a `labelSelector`, the functions' pods are counted",
    resources: "Of the container",
    "podDisruptionBudget.enabled": "Whether the functions have a PodDisruptionBudget",
    "podDisruptionBudget.minAvailable":
      'A number, or a percentage such as `"50%"`. With `replicas: 1` it blocks the drain of the node',
  },
  "The reconciler and the certificate job": {
    "reconciler.allNamespaces":
      "One reconciler for the whole cluster, as `infra/manifests/all-namespaces`. Requires `webhooks.enabled: false` and no policy on the reconciler; one release of the cluster",
    "reconciler.resources": "Of its container",
    "certificates.enabled":
      "Whether Zonewise makes the webhooks' certificate. With `false`, the Secret of `webhooks.selfSignedCertSecretName` must exist with `tls.crt` and `tls.key`, and somebody else gives the API server its CA ([certificates](../operate/certificates.md#cert-manager))",
    "certificates.resources": "Of the job's container",
  },
  "The status page": {
    "statusPage.enabled":
      "[The status page](../operate/on-call.md#the-status-page), as `infra/manifests/status-page`. It never uses the node's network",
    "statusPage.resources": "Of its container",
  },
  "Webhooks and policies": {
    "webhooks.enabled": "With `false`, only the reconciler is installed, as `infra/manifests/reconciler`",
    "webhooks.timeoutSeconds": "How long the API server waits for an answer: 1 to 30",
    "webhooks.failurePolicy": "`Fail` or `Ignore`: what happens to a request while no webhook answers",
    "webhooks.failurePolicies.noDownscale": "Of this webhook; `webhooks.failurePolicy` if it is empty",
    "webhooks.failurePolicies.phasedDefaults":
      "The same. It fails open by default: the reconciler has the same defaults",
    "webhooks.failurePolicies.phasedValidation":
      "The same. It fails open by default: without an answer of Prometheus no pod is released, and no gate opens",
    "webhooks.failurePolicies.podDeletion": "The same",
    "webhooks.failurePolicies.podEviction": "The same",
    "webhooks.failurePolicies.prepareDownscale": "The same",
    "webhooks.failurePolicies.raisePartition":
      "The same. It fails open by default: the reconciler raises the partition, too",
    "webhooks.failurePolicies.zpdbValidation":
      "The same. It fails open by default: the definition refuses nearly as much, and an invalid stored budget denies evictions",
    "webhooks.selfSignedCertSecretName":
      "Name of the Secret with the certificate. The original's chart has `certificate`",
    "webhooks.annotations": "Annotations of the configurations, such as `cert-manager.io/inject-ca-from`",
    "webhooks.objectSelector": "",
    "namespaceSelector.matchExpressions":
      "More conditions on the namespace's labels, for webhooks and policies to apply",
    "namespaceSelector.matchLabels": "",
    "scalePolicies.enabled":
      "The API server itself refuses downscales through `/scale` of objects with `grafana.com/no-downscale`, as `infra/manifests/scale-policies` ([cost](../guides/scaling.md#refuse-downscales))",
    "podDeletionPolicy.enabled":
      "The API server [refuses deletions](../guides/budgets.md#guard-deletions-too) of running pods of a group, as `infra/manifests/pod-deletion-policy`. Not with `reconciler.allNamespaces`",
    "podDeletionWebhook.enabled":
      "[Deletions ask the budget](../guides/budgets.md#guard-deletions-too), as `infra/manifests/pod-deletion-webhook`. Not beside `podDeletionPolicy`, nor without `webhooks.enabled`",
    "replicasPolicy.enabled":
      "Only the reconciler changes replicas of zones that follow others, as `infra/manifests/replicas-policy`. Not with `reconciler.allNamespaces`",
    "reconcilerPolicy.enabled":
      "The reconciler changes no pod template, label or image, as `infra/manifests/reconciler-policy`. Not with `reconciler.allNamespaces`",
    "phasedPolicy.enabled":
      "Keeps the partition of a StatefulSet of a PhasedRollout [without a call](../guides/phased-rollouts.md#what-others-write), as `infra/manifests/phased-policy`. Left out before Kubernetes 1.36, as Helm finds it: the webhook `raise-partition` does the same",
  },
  "Network and metrics": {
    "networkPolicy.enabled": "[The network policies](../operate/hardening.md#network-policy)",
    "networkPolicy.apiServer": "The API servers' addresses, as one range (CIDR). Required if they are enabled",
    "networkPolicy.monitoring": "The namespace of Prometheus and of the Pushgateway",
    "serviceMonitor.enabled":
      "A ServiceMonitor for [the functions](metrics.md#dashboards-and-alerts-of-the-original). Only one of the two monitors",
    "serviceMonitor.namespace": "Another namespace for it. It then selects the release's namespace",
    "serviceMonitor.namespaceSelector": "Replaces that",
    "serviceMonitor.annotations": "Its annotations",
    "serviceMonitor.labels": "More labels, by which a Prometheus may select it",
    "serviceMonitor.interval": "The time between two scrapes",
    "serviceMonitor.scrapeTimeout": "The time that a scrape may take",
    "serviceMonitor.relabelings": "Added after ours, which sets the label `job`",
    "podMonitor.enabled": "A PodMonitor for the same",
    "podMonitor.namespace": "As of `serviceMonitor`, and so the rest",
    "podMonitor.namespaceSelector": "The same",
    "podMonitor.annotations": "The same",
    "podMonitor.labels": "The same",
    "podMonitor.interval": "The same",
    "podMonitor.scrapeTimeout": "The same",
    "podMonitor.relabelings": "The same",
    "prometheusRule.enabled":
      "[The alerts](../operate/runbooks.md), as `infra/observability`. They cover all namespaces: one release for each Prometheus is enough",
    "prometheusRule.runbookBase":
      "Where you serve `docs/`: the beginning of each alert's `runbook_url`. The default is a placeholder",
    "prometheusRule.namespace": "Another namespace for it",
    "prometheusRule.annotations": "Its annotations",
    "prometheusRule.labels": "More labels, by which a Prometheus may select it",
    "dashboards.enabled":
      "The dashboard in a ConfigMap for Grafana's sidecar, as `infra/observability`. One release for each Grafana",
    "dashboards.namespace": "Another namespace for it",
    "dashboards.annotations": "Its annotations, such as the sidecar's for a folder",
    "dashboards.labels.grafana_dashboard": "The label that the sidecar looks for",
    "prometheusSecrets.names":
      "Secrets that the reconciler may read for [queries of gates and PhasedRollouts](../guides/gates.md#credentials-and-tls), as `infra/manifests/prometheus-secrets`. Also set `PROMETHEUS_ALLOWED_HOSTS` in `extraEnv` ([why](../../SECURITY.md#who-writes-a-check))",
    "prometheusSecrets.namespaces": "Where they are; the release's namespace if it is empty. Only with `names`",
  },
  "Node updates": {
    "nodeUpdates.enabled":
      "Install node updates, with their definitions if they are missing. Before you set it back to `false`, remove the label from the nodes and wait until no shadow is left",
    "nodeUpdates.policy":
      "The `spec` of the [NodeUpdatePolicy](node-policy.md) `default`. If it is empty, the release has none: apply yours before you label nodes",
    "nodeUpdates.agent.excludeFromLbWaitSeconds":
      "Seconds between excluding a node from load balancers and its drain; 0 does not exclude it",
    "nodeUpdates.agent.tolerations": "As in a pod; `tolerations` does not concern the agents",
    "nodeUpdates.agent.priorityClassName": "The same",
    "nodeUpdates.agent.resources": "Of its container",
    "nodeUpdates.api.replicas": "How many run; at least 1",
    "nodeUpdates.api.resources": "Of its container",
    "nodeUpdates.certificates.resources": "Of the container of its certificate job",
  },
};
