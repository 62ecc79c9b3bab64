{{/* Labels of all objects of the chart. Call with (dict "root" $ "name" NAME). */}}
{{- define "hookgate.labels" -}}
app.kubernetes.io/name: {{ .name }}
app.kubernetes.io/part-of: hookgate
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ .root.Chart.Name }}-{{ .root.Chart.Version }}
{{- end }}

{{/* Reference of an image. Call with (dict "root" $ "name" NAME "digest" DIGEST). */}}
{{- define "hookgate.image" -}}
{{- $image := .root.Values.image -}}
{{- if .digest -}}
{{ $image.registry }}/{{ .name }}@{{ .digest }}
{{- else -}}
{{ $image.registry }}/{{ .name }}:{{ $image.tag | default .root.Chart.AppVersion }}
{{- end -}}
{{- end }}

{{/* API version of PodDisruptionBudgets. Kubernetes 1.20 has only the older one. */}}
{{- define "hookgate.budgetVersion" -}}
{{- if semverCompare ">=1.21-0" .Capabilities.KubeVersion.Version -}}policy/v1{{- else -}}policy/v1beta1{{- end -}}
{{- end }}
