{{/* SPDX-License-Identifier: Apache-2.0 */}}

{{/* "true" where there is one. */}}
{{- define "dispatcher.controlled" -}}
{{- if .Values.controller.enabled -}}
{{- if not (include "dispatcher.api" .) -}}
{{- fail "controller.enabled needs registry.source: API: objects in ConfigMaps have no conditions" -}}
{{- end -}}
true
{{- end -}}
{{- end -}}

{{- define "dispatcher.controller" -}}
{{ include "dispatcher.name" . }}-controller
{{- end -}}

{{/* What finds its pod, and no pod of the dispatcher's: those are behind the Service. */}}
{{- define "dispatcher.controllerSelector" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride }}-controller
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "dispatcher.controllerLabels" -}}
{{ include "dispatcher.controllerSelector" . }}
app.kubernetes.io/component: controller
app.kubernetes.io/version: {{ default .Chart.AppVersion .Values.image.tag | trunc 63 | quote }}
dispatcher.dev/cell: {{ default .Release.Name .Values.cell }}
{{- end -}}
