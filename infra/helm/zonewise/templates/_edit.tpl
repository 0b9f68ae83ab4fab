{{- /* Admission policies that change objects. */}}
{{- define "zonewise.before136" -}}
{{- if semverCompare "<1.36-0" .Capabilities.KubeVersion.Version }}true{{ end }}
{{- end }}

{{- /* Names that stand for themselves in the manifests: the namespace (of infra/manifests/namespace), the certificate's Secret, both of network-policy/policies.yaml, which no namespace can be called. */}}
{{- define "zonewise.fill" -}}
{{- $values := .root.Values }}
{{- /* Quoted where it is the whole value: a namespace may be called 2024, which YAML takes for a number. */}}
{{- $text := regexReplaceAll ": zonewise([,}\n])" .text (printf ": %q${1}" .root.Release.Namespace) }}
{{- regexReplaceAll "([-.: ])zonewise([]:,. \n])" $text (printf "${1}%s${2}" .root.Release.Namespace)
  | replace "rollout-operator-self-signed-certificate" $values.webhooks.selfSignedCertSecretName
  | replace "API_SERVER_CIDR" $values.networkPolicy.apiServer
  | replace "MONITORING_NAMESPACE" $values.networkPolicy.monitoring }}
{{- end }}

{{- /* Changes an object in place by the values of its kind. Writes nothing. */}}
{{- define "zonewise.edit" -}}
{{- $values := .root.Values }}
{{- $object := .object }}
{{- $metadata := $object.metadata }}
{{- $spec := $object.spec }}
{{- $kind := $object.kind }}
{{- if not (regexMatch "^(ClusterRole|Validating|Mutating)" $kind) }}
{{- $_ := set $metadata "namespace" .root.Release.Namespace }}
{{- end }}
{{- if and (eq $kind "Deployment") (eq $metadata.name "zonewise-status") }}
  {{- include "zonewise.pod" (dict "root" .root "name" "status" "template" $spec.template "resources" $values.statusPage.resources) }}
  {{- /* Its loopback address would be the node's. */}}
  {{- $_ := unset $spec.template.spec "hostNetwork" }}
  {{- $_ := unset $spec.template.spec "dnsPolicy" }}
{{- else if eq $kind "Deployment" }}
  {{- range $field := list "replicas" "minReadySeconds" "revisionHistoryLimit" }}
  {{- $_ := set $spec $field (index $values $field) }}
  {{- end }}
  {{- with $values.topologySpreadConstraints }}
  {{- $spread := list }}
  {{- range . }}{{ $spread = append $spread (merge (deepCopy .) (dict "labelSelector" $spec.selector)) }}{{ end }}
  {{- $_ := set $spec.template.spec "topologySpreadConstraints" $spread }}
  {{- end }}
  {{- include "zonewise.annotate" (dict "metadata" $metadata "annotations" $values.annotations) }}
  {{- include "zonewise.pod" (dict "root" .root "name" "functions" "template" $spec.template "resources" $values.resources) }}
{{- else if eq $kind "CronJob" }}
  {{- $name := trimPrefix "zonewise-" $metadata.name }}
  {{- include "zonewise.pod" (dict "root" .root "name" $name "template" $spec.jobTemplate.spec.template "resources" (index $values $name).resources) }}
{{- else if eq $kind "PodDisruptionBudget" }}
  {{- $_ := set $spec "minAvailable" $values.podDisruptionBudget.minAvailable }}
{{- else if eq $kind "Service" }}
  {{- $_ := set $metadata "name" $values.service.name }}
{{- else if eq $kind "ServiceAccount" }}
  {{- include "zonewise.annotate" (dict "metadata" $metadata "annotations" $values.serviceAccount.annotations) }}
{{- else if eq $kind "RoleBinding" }}
  {{- range $object.subjects }}{{ $_ := set . "namespace" $.root.Release.Namespace }}{{ end }}
{{- else if hasSuffix "WebhookConfiguration" $kind }}
  {{- include "zonewise.webhook" . }}
{{- else if hasSuffix "AdmissionPolicy" $kind }}
  {{- include "zonewise.select" (dict "values" $values "selector" $spec.matchConstraints.namespaceSelector) }}
{{- else if hasSuffix "Monitor" $kind }}
  {{- include "zonewise.monitor" . }}
{{- else if eq $kind "PrometheusRule" }}
  {{- include "zonewise.place" (dict "metadata" $metadata "values" $values.prometheusRule) }}
{{- else if eq $kind "ConfigMap" }}
  {{- include "zonewise.place" (dict "metadata" $metadata "values" $values.dashboards) }}
{{- end }}
{{- with $values.global.commonLabels }}
{{- $_ := set $metadata "labels" (merge (default dict $metadata.labels) .) }}
{{- end }}
{{- end }}

{{- define "zonewise.annotate" -}}
{{- with .annotations }}{{ $_ := set $.metadata "annotations" . }}{{ end }}
{{- end }}

{{- /* Further conditions on the namespace; not where all namespaces are meant. */}}
{{- define "zonewise.select" -}}
{{- with .values.namespaceSelector.matchExpressions }}
{{- if $.selector }}{{ $_ := set $.selector "matchExpressions" . }}{{ end }}
{{- end }}
{{- end }}

{{- define "zonewise.webhook" -}}
{{- $values := .root.Values }}
{{- $name := trimSuffix (printf "-%s" .root.Release.Namespace) .object.metadata.name | camelcase | untitle }}
{{- include "zonewise.annotate" (dict "metadata" .object.metadata "annotations" $values.webhooks.annotations) }}
{{- range .object.webhooks }}
{{- $_ := set . "failurePolicy" (get $values.webhooks.failurePolicies $name | default $values.webhooks.failurePolicy) }}
{{- $_ := set . "timeoutSeconds" $values.webhooks.timeoutSeconds }}
{{- $_ := set .clientConfig.service "name" $values.service.name }}
{{- include "zonewise.select" (dict "values" $values "selector" .namespaceSelector) }}
{{- end }}
{{- end }}

{{- /* Labels, annotations and another namespace, if the values say one. */}}
{{- define "zonewise.place" -}}
{{- $_ := set .metadata "labels" (merge (deepCopy .values.labels) (default dict .metadata.labels)) }}
{{- include "zonewise.annotate" (dict "metadata" .metadata "annotations" .values.annotations) }}
{{- with .values.namespace }}{{ $_ := set $.metadata "namespace" . }}{{ end }}
{{- end }}

{{- define "zonewise.monitor" -}}
{{- $monitor := index .root.Values (untitle .object.kind) }}
{{- $spec := .object.spec }}
{{- $endpoint := first (default $spec.podMetricsEndpoints $spec.endpoints) }}
{{- include "zonewise.place" (dict "metadata" .object.metadata "values" $monitor) }}
{{- if $monitor.namespace }}
{{- $_ := set $spec "namespaceSelector" (dict "matchNames" (list $.root.Release.Namespace)) }}
{{- end }}
{{- with $monitor.namespaceSelector }}{{ $_ := set $spec "namespaceSelector" . }}{{ end }}
{{- with $monitor.interval }}{{ $_ := set $endpoint "interval" . }}{{ end }}
{{- with $monitor.scrapeTimeout }}{{ $_ := set $endpoint "scrapeTimeout" . }}{{ end }}
{{- $_ := set $endpoint "relabelings" (concat $endpoint.relabelings $monitor.relabelings) }}
{{- end }}
