{{/*
Deployment and PodDisruptionBudget of a program, or of one of its shards. Call with
(dict "root" $ "name" NAME "image" IMAGE-NAME "values" VALUES "args" ARGS "ports" PORTS "grace" SECONDS), for a
shard also with "shard" INDEX.
*/}}
{{- define "hookgate.program" -}}
{{- $root := .root -}}
{{- $global := .root.Values -}}
{{- $called := include "hookgate.called" . -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ $called }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "hookgate.labels" . | nindent 4 }}
spec:
  replicas: {{ .values.replicas }}
  selector:
    matchLabels: {{ include "hookgate.selector" . }}
  strategy:
    rollingUpdate: { maxUnavailable: 0, maxSurge: 1 }
  template:
    metadata:
      labels:
        app.kubernetes.io/name: {{ .name }}
        {{- if hasKey . "shard" }}
        app.kubernetes.io/instance: {{ $called }}
        {{- end }}
        app.kubernetes.io/part-of: hookgate
        {{- with $global.podLabels }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- with $global.podAnnotations }}
      annotations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
    spec:
      serviceAccountName: {{ .name }}
      terminationGracePeriodSeconds: {{ .grace }}
      {{- with $global.image.pullSecrets }}
      imagePullSecrets:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $global.priorityClassName }}
      priorityClassName: {{ . }}
      {{- end }}
      # The images name the user. A fixed one here would be outside of the range that OpenShift gives to a namespace.
      securityContext:
        runAsNonRoot: true
        seccompProfile: { type: RuntimeDefault }
      {{- with $global.nodeSelector }}
      nodeSelector:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $global.tolerations }}
      tolerations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      affinity:
        {{- if .values.affinity }}
        {{- toYaml .values.affinity | nindent 8 }}
        {{- else }}
        podAntiAffinity:
          preferredDuringSchedulingIgnoredDuringExecution:
            - weight: 100
              podAffinityTerm:
                topologyKey: kubernetes.io/hostname
                labelSelector:
                  matchLabels: {{ include "hookgate.selector" . }}
        {{- end }}
      containers:
        - name: {{ .name }}
          image: {{ include "hookgate.image" (dict "root" $root "name" .image "digest" .values.digest) }}
          imagePullPolicy: {{ $global.image.pullPolicy }}
          args:
            {{- toYaml (concat .args .values.extraArgs) | nindent 12 }}
          env:
            # Name of the process in the Lease.
            - name: POD_NAME
              valueFrom: { fieldRef: { fieldPath: metadata.name } }
            {{- with .values.extraEnv }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
          ports:
            {{- toYaml .ports | nindent 12 }}
          livenessProbe:
            httpGet: { path: /healthz, port: http }
            timeoutSeconds: 5
          readinessProbe:
            httpGet: { path: /readyz, port: http }
            periodSeconds: 5
            timeoutSeconds: 5
          resources:
            {{- toYaml .values.resources | nindent 12 }}
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities: { drop: [ALL] }
{{- if .values.podDisruptionBudget }}
---
apiVersion: {{ include "hookgate.budgetVersion" $root }}
kind: PodDisruptionBudget
metadata:
  name: {{ $called }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "hookgate.labels" . | nindent 4 }}
spec:
  # A single replica may be evicted as well: nothing is lost while no operator runs.
  maxUnavailable: 1
  selector:
    matchLabels: {{ include "hookgate.selector" . }}
{{- end }}
{{- end }}

{{/* Name of the Deployment of a program, or of one of its shards. */}}
{{- define "hookgate.called" -}}
{{ .name }}{{ if hasKey . "shard" }}-shard-{{ .shard }}{{ end }}
{{- end }}

{{/* Labels of the pods of a program, or of one of its shards. */}}
{{- define "hookgate.selector" -}}
{ app.kubernetes.io/name: {{ .name }}{{ if hasKey . "shard" }}, app.kubernetes.io/instance: {{ include "hookgate.called" . }}{{ end }} }
{{- end }}

{{/*
Objects of an operator: one Deployment for each of its shards, which share all namespaces, or a single one. Call with
(dict "root" $ "name" NAME "values" VALUES "args" ARGS).
*/}}
{{- define "hookgate.operator" -}}
{{- $ports := list (dict "name" "http" "containerPort" 8080 "protocol" "TCP") -}}
{{- $program := merge (dict "image" .name "ports" $ports "grace" 15) . -}}
{{- $count := int .values.shards -}}
{{- if le $count 1 -}}
{{ include "hookgate.program" $program }}
{{- else -}}
{{- if .root.Values.namespaced }}{{ fail (printf "%s: shards divide all namespaces, but namespaced: true manages only one; set shards to 1" .name) }}{{ end -}}
{{- range $shard := until $count -}}
{{- $args := append $.args (printf "--shard=%d/%d" $shard $count) -}}
{{- if $shard }}
---
{{ end -}}
{{ include "hookgate.program" (merge (dict "shard" $shard "args" $args) $program) }}
{{- end -}}
{{- end }}
---
{{ include "hookgate.metricsService" . }}
{{- end }}

{{/* Flags of both operators. Call with (dict "root" $ "values" VALUES). */}}
{{- define "hookgate.operatorArgs" -}}
{{- $global := .root.Values -}}
- --log-format={{ $global.log.format }}
- --log={{ $global.log.level }}
- --lease-duration={{ $global.leaseDuration }}
- --api-concurrency={{ .values.apiConcurrency }}
{{- with $global.tracing.endpoint }}
- --otlp-endpoint={{ . }}
{{- end }}
{{- if $global.monitoring.originalMetrics }}
- --original-metrics
{{- end }}
{{- if $global.namespaced }}
- --namespace={{ .root.Release.Namespace }}
{{- end }}
{{- end }}

{{/* Service for the metrics of an operator, with all its shards. Call with (dict "root" $ "name" NAME). */}}
{{- define "hookgate.metricsService" -}}
apiVersion: v1
kind: Service
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "hookgate.labels" . | nindent 4 }}
spec:
  # Headless, so that the metrics of every replica are scraped.
  clusterIP: None
  selector: { app.kubernetes.io/name: {{ .name }} }
  ports:
    - { name: http, port: 8080, targetPort: http, protocol: TCP }
{{- end }}
