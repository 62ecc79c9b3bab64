{{/* Namespace of a role if the operators work in one namespace; otherwise nothing. */}}
{{- define "hookgate.scope" -}}
{{- if .Values.namespaced }}
  namespace: {{ .Release.Namespace }}
{{- end }}
{{- end }}

{{/* Service account of a program. Call with (dict "root" $ "name" NAME). */}}
{{- define "hookgate.serviceAccount" -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "hookgate.labels" . | nindent 4 }}
  {{- with .root.Values.rbac.serviceAccountAnnotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}

{{/* Binding of a program to the role of the same name. Call with (dict "root" $ "name" NAME "role" KIND). */}}
{{- define "hookgate.binding" -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ .role }}Binding
metadata:
  name: {{ .name }}
  {{- if eq .role "Role" }}
  namespace: {{ .root.Release.Namespace }}
  {{- end }}
  labels:
    {{- include "hookgate.labels" . | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ .role }}
  name: {{ .name }}
subjects:
  - kind: ServiceAccount
    name: {{ .name }}
    namespace: {{ .root.Release.Namespace }}
{{- end }}

{{/*
Names of the operators' Leases: without shards, and for each number of shards up to four or, if it is greater, the
present one. Call with the root.
*/}}
{{- define "hookgate.leases" -}}
{{- $operators := dict "gamedeployment-operator" .Values.gameDeploymentOperator "hook-operator" .Values.hookOperator -}}
{{- $names := list -}}
{{- range $operator, $values := $operators -}}
{{- $names = append $names $operator -}}
{{- if not $.Values.namespaced -}}
{{- range $count := untilStep 1 (max 4 (int $values.shards) | add1 | int) 1 -}}
{{- range $shard := until $count -}}
{{- $names = append $names (printf "%s-shard-%d-of-%d" $operator $shard $count) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toYaml $names -}}
{{- end }}
