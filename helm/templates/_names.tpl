{{/* Labels of all objects of the chart. Call with (dict "root" $ "name" NAME). */}}
{{- define "hookgate.labels" -}}
app.kubernetes.io/name: {{ .name }}
app.kubernetes.io/part-of: hookgate
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ .root.Chart.Name }}-{{ .root.Chart.Version }}
{{- end }}

{{/*
Reference of an image. A released chart has the digests of its images in annotations. Call with
(dict "root" $ "name" NAME "digest" DIGEST).
*/}}
{{- define "hookgate.image" -}}
{{- $image := .root.Values.image -}}
{{- $digest := .digest -}}
{{- if not (or $digest $image.tag) -}}
{{- $digest = index (.root.Chart.Annotations | default dict) (printf "hookgate.tkex.tencent.com/digest-%s" .name) -}}
{{- end -}}
{{- if $digest -}}
{{ $image.registry }}/{{ .name }}@{{ $digest }}
{{- else -}}
{{ $image.registry }}/{{ .name }}:{{ $image.tag | default .root.Chart.AppVersion }}
{{- end -}}
{{- end }}

{{/* API version of PodDisruptionBudgets. Kubernetes 1.20 has only the older one. */}}
{{- define "hookgate.budgetVersion" -}}
{{- if semverCompare ">=1.21-0" .Capabilities.KubeVersion.Version -}}policy/v1{{- else -}}policy/v1beta1{{- end -}}
{{- end }}

{{/* API version of FlowSchemas. Empty if the cluster does not serve the one of its Kubernetes version. */}}
{{- define "hookgate.flowVersion" -}}
{{- $kubernetes := .Capabilities.KubeVersion.Version -}}
{{- $version := "v1beta1" -}}
{{- if semverCompare ">=1.29-0" $kubernetes -}}{{- $version = "v1" -}}
{{- else if semverCompare ">=1.26-0" $kubernetes -}}{{- $version = "v1beta3" -}}
{{- else if semverCompare ">=1.23-0" $kubernetes -}}{{- $version = "v1beta2" -}}
{{- end -}}
{{- $version = printf "flowcontrol.apiserver.k8s.io/%s" $version -}}
{{- if .Capabilities.APIVersions.Has $version -}}{{ $version }}{{- end -}}
{{- end }}

{{/* Port of the collector that gets the traces. Call with the root. */}}
{{- define "hookgate.tracingPort" -}}
{{- $endpoint := .Values.tracing.endpoint -}}
{{- $parts := regexFindAll "^https?://([^/?#@]*@)?(\\[[0-9A-Fa-f:.]+\\]|[^]/?#@:[\\s]+)(:[0-9]{1,5})?([/?#]|$)" $endpoint 1 -}}
{{- if not $parts -}}
{{- fail (printf "tracing.endpoint: %q has no port that the NetworkPolicy could allow; write it as http://collector.monitoring:4318" $endpoint) -}}
{{- end -}}
{{- $port := regexReplaceAll "^.*?(:([0-9]+))?[/?#]?$" (first $parts) "${2}" -}}
{{- $port = $port | default (ternary "443" "80" (hasPrefix "https:" $endpoint)) | int -}}
{{- if or (lt $port 1) (gt $port 65535) -}}
{{- fail (printf "tracing.endpoint: the port of %q must be between 1 and 65535" $endpoint) -}}
{{- end -}}
{{- $port -}}
{{- end }}
