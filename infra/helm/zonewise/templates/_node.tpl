{{- /* Changes an object of node updates in place by the values of its kind. Writes nothing. */}}
{{- define "zonewise.node" -}}
{{- $values := .root.Values }}
{{- $nodes := $values.nodeUpdates }}
{{- $spec := .object.spec }}
{{- $kind := .object.kind }}
{{- if eq $kind "Deployment" }}
  {{- $_ := set $spec "replicas" $nodes.api.replicas }}
  {{- include "zonewise.pod" (dict "root" .root "name" "node-updates" "template" $spec.template "resources" $nodes.api.resources) }}
{{- else if eq $kind "CronJob" }}
  {{- include "zonewise.pod" (dict "root" .root "name" "node-updates" "template" $spec.jobTemplate.spec.template "resources" $nodes.certificates.resources) }}
{{- else if eq $kind "DaemonSet" }}
  {{- include "zonewise.agent" (dict "root" .root "template" $spec.template "agent" $nodes.agent) }}
{{- end }}
{{- with $values.global.commonLabels }}
{{- $_ := set $.object.metadata "labels" (merge (default dict $.object.metadata.labels) .) }}
{{- end }}
{{- end }}

{{- /* The agents run where the nodes are labelled, as the host's socket wants it: placement and security of other pods do not concern them. */}}
{{- define "zonewise.agent" -}}
{{- $values := .root.Values }}
{{- $metadata := .template.metadata }}
{{- $pod := .template.spec }}
{{- $container := first $pod.containers }}
{{- $_ := set $metadata "labels" (merge $metadata.labels $values.podLabels) }}
{{- include "zonewise.annotate" (dict "metadata" $metadata "annotations" $values.podAnnotations) }}
{{- with $values.imagePullSecrets }}{{ $_ := set $pod "imagePullSecrets" . }}{{ end }}
{{- with .agent.tolerations }}{{ $_ := set $pod "tolerations" . }}{{ end }}
{{- with .agent.priorityClassName }}{{ $_ := set $pod "priorityClassName" . }}{{ end }}
{{- $_ := set $container "resources" .agent.resources }}
{{- $_ := set $container "image" (include "zonewise.image" .root) }}
{{- with $values.image.pullPolicy }}{{ $_ := set $container "imagePullPolicy" . }}{{ end }}
{{- with $values.extraEnvFrom }}{{ $_ := set $container "envFrom" . }}{{ end }}
{{- $wait := dict "name" "EXCLUDE_FROM_LB_WAIT_TIME_IN_SEC" "value" (.agent.excludeFromLbWaitSeconds | int | toString) }}
{{- $_ := set $container "env" (include "zonewise.env" (concat $container.env (list $wait) $values.extraEnv) | fromJsonArray) }}
{{- end }}
