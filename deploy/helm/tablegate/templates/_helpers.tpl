{{- define "tablegate.name" -}}
{{- printf "%s" .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "tablegate.labels" -}}
app.kubernetes.io/name: tablegate
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "tablegate.selector" -}}
app.kubernetes.io/name: tablegate
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: gateway
{{- end -}}

{{- define "tablegate.secret" -}}
{{- .Values.existingSecret | default (include "tablegate.name" .) -}}
{{- end -}}

{{- define "tablegate.image" -}}
{{- printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) -}}
{{- end -}}

{{- define "tablegate.environment" -}}
- name: TABLEGATE_DATABASE
  valueFrom: {secretKeyRef: {name: {{ include "tablegate.secret" . }}, key: database}}
- name: TABLEGATE_SECRET_KEY
  valueFrom: {secretKeyRef: {name: {{ include "tablegate.secret" . }}, key: secret-key}}
{{- end -}}

{{- define "tablegate.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{- define "tablegate.podSecurity" -}}
runAsNonRoot: true
runAsUser: 1000
runAsGroup: 1000
fsGroup: 1000
seccompProfile: {type: RuntimeDefault}
{{- end -}}
