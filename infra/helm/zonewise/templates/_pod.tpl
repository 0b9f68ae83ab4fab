{{- /* Changes a pod template in place: what all pods have in common, and its resources. Writes nothing. */}}
{{- define "zonewise.pod" -}}
{{- $values := .root.Values }}
{{- $metadata := .template.metadata }}
{{- $pod := .template.spec }}
{{- $container := first $pod.containers }}
{{- $_ := set $metadata "labels" (merge $metadata.labels $values.podLabels) }}
{{- include "zonewise.annotate" (dict "metadata" $metadata "annotations" $values.podAnnotations) }}
{{- range $field := list "imagePullSecrets" "hostAliases" "hostNetwork" "nodeSelector" "tolerations" "affinity" "priorityClassName" }}
{{- with index $values $field }}{{ $_ := set $pod $field . }}{{ end }}
{{- end }}
{{- if $values.hostNetwork }}{{ $_ := set $pod "dnsPolicy" "ClusterFirstWithHostNet" }}{{ end }}
{{- $_ := set $pod "securityContext" (hasKey $pod "volumes" | ternary $values.podSecurityContext (omit $values.podSecurityContext "fsGroup")) }}
{{- $_ := set $container "securityContext" $values.securityContext }}
{{- $_ := set $container "resources" .resources }}
{{- $_ := set $container "image" (include "zonewise.image" .root) }}
{{- with $values.image.pullPolicy }}{{ $_ := set $container "imagePullPolicy" . }}{{ end }}
{{- with $values.extraEnvFrom }}{{ $_ := set $container "envFrom" . }}{{ end }}
{{- $_ := set $container "env" (include "zonewise.env" (concat $container.env (include "zonewise.variables" . | fromJsonArray) $values.extraEnv) | fromJsonArray) }}
{{- end }}

{{- /* A registry that is left over from other values is not put in front of a repository with a host of its own. */}}
{{- define "zonewise.image" -}}
{{- if not (regexMatch "^(localhost|[^/]*[.:][^/]*)/" .Values.image.repository) }}
{{- with .Values.image.registry }}{{ . }}/{{ end }}
{{- end }}
{{- .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- /* The variables that follow from values. Those of the webhooks' certificate do not concern node updates. */}}
{{- define "zonewise.variables" -}}
{{- $values := .root.Values }}
{{- $variables := list }}
{{- if ne .name "node-updates" }}
{{- if and (eq .name "reconciler") $values.reconciler.allNamespaces }}
{{- $variables = append $variables (dict "name" "NAMESPACES" "value" "*") }}
{{- end }}
{{- if and (ne .name "functions") (ne $values.service.name "rollout-operator") }}
{{- $variables = append $variables (dict "name" "SERVER_TLS_SELF_SIGNED_CERT_DNS_NAME" "value" (printf "%s.%s.svc" $values.service.name .root.Release.Namespace)) }}
{{- end }}
{{- if and $values.webhooks.enabled (not $values.certificates.enabled) }}
{{- $variables = append $variables (dict "name" "SERVER_TLS_SELF_SIGNED_CERT_ENABLED" "value" "false") }}
{{- end }}
{{- with $values.webhooks.selfSignedCertSecretName }}
{{- if ne . "rollout-operator-self-signed-certificate" }}
{{- $variables = append $variables (dict "name" "SERVER_TLS_SELF_SIGNED_CERT_SECRET_NAME" "value" .) }}
{{- end }}
{{- end }}
{{- end }}
{{- toJson $variables }}
{{- end }}

{{- /* Variables without those that a later one of the same name replaces. */}}
{{- define "zonewise.env" -}}
{{- $byName := dict }}
{{- range . }}{{ $_ := set $byName .name . }}{{ end }}
{{- $env := list }}
{{- range . }}
{{- if hasKey $byName .name }}{{ $env = append $env (get $byName .name) }}{{ end }}
{{- $_ := unset $byName .name }}
{{- end }}
{{- toJson $env }}
{{- end }}
