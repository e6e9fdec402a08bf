{{/* Names and labels that all objects share. */}}
{{- define "sockpqd.name" -}}
{{- if contains "sockpqd" .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-sockpqd" .Release.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "sockpqd.selector" -}}
app.kubernetes.io/name: sockpqd
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "sockpqd.labels" -}}
{{ include "sockpqd.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{/* The domain below which each node has its name. */}}
{{- define "sockpqd.domain" -}}
{{ include "sockpqd.name" . }}-nodes.{{ .Release.Namespace }}.svc.{{ .Values.clusterDomain }}
{{- end }}
