{{/* SPDX-License-Identifier: Apache-2.0 */}}

{{/* The name of the objects. */}}
{{- define "dispatcher.name" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- $chart := default .Chart.Name .Values.nameOverride -}}
{{- if contains $chart .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $chart | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* What finds the pods, for ever: a Deployment's selector cannot be changed. */}}
{{- define "dispatcher.selector" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "dispatcher.labels" -}}
{{ include "dispatcher.selector" . }}
app.kubernetes.io/component: admission
app.kubernetes.io/version: {{ default .Chart.AppVersion .Values.image.tag | trunc 63 | quote }}
dispatcher.dev/cell: {{ default .Release.Name .Values.cell }}
{{- end -}}

{{- define "dispatcher.tlsSecret" -}}
{{- default (printf "%s-tls" (include "dispatcher.name" .)) .Values.tls.secretName -}}
{{- end -}}

{{- define "dispatcher.authorities" -}}
{{- default (printf "%s-authorities" (include "dispatcher.name" .)) .Values.tls.authorities.configMap -}}
{{- end -}}

{{/* What both containers run. */}}
{{- define "dispatcher.image" -}}
{{ .Values.image.repository }}{{ if .Values.image.digest }}@{{ .Values.image.digest }}{{ else }}:{{ default .Chart.AppVersion .Values.image.tag }}{{ end }}
{{- end -}}

{{/* "true" where the registry is in the API of this cluster. */}}
{{- define "dispatcher.api" -}}
{{- if eq .Values.registry.source "API" -}}
{{- if eq .Values.registry.api.namespace .Release.Namespace -}}
{{- fail "registry.api.namespace must be another namespace than the release's, which has the serving key" -}}
{{- end -}}
true
{{- end -}}
{{- end -}}

{{/* "true" where this release has what several share. */}}
{{- define "dispatcher.shared" -}}
{{- if and (include "dispatcher.api" .) .Values.registry.api.shared -}}true{{- end -}}
{{- end -}}

{{/* Labels of what belongs to the registry, and not to a release. */}}
{{- define "dispatcher.sharedLabels" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride }}
app.kubernetes.io/component: registry
{{- end -}}

{{- define "dispatcher.priorityClass" -}}
{{- default (include "dispatcher.name" .) .Values.priorityClass.name -}}
{{- end -}}

{{/* The ConfigMaps with manifests, as a list in YAML. */}}
{{- define "dispatcher.registries" -}}
{{- $own := printf "%s-registry" (include "dispatcher.name" .) -}}
{{- $names := .Values.registry.configMaps -}}
{{- if include "dispatcher.api" . -}}
{{- $names = list -}}
{{- else if or .Values.registry.manifests (not $names) -}}
{{- $names = prepend $names $own | uniq -}}
{{- end -}}
{{- toYaml $names -}}
{{- end -}}

{{/* The process's configuration: what the chart decides over what values add. Paths are those of the volumes. */}}
{{- define "dispatcher.configuration" -}}
{{- $sources := list -}}
{{- range include "dispatcher.registries" . | fromYamlArray -}}
{{- $sources = append $sources (dict "directory" (printf "../registry/%s" .)) -}}
{{- end -}}
{{- if include "dispatcher.api" . -}}
{{- $sources = list (dict "mirror" "../mirror") -}}
{{- end -}}
{{- $roots := list -}}
{{- range .Values.registry.secrets -}}
{{- $roots = append $roots (printf "../secrets/%s" .) -}}
{{- end -}}
{{- $pair := dict "certFile" "../tls/tls.crt" "keyFile" "../tls/tls.key" -}}
{{- $tls := merge (dict "clientCAFile" "../authorities/clients.crt" "clientAuth" .Values.tls.clientAuth) $pair -}}
{{- $adminTLS := merge (dict "clientCAFile" "../authorities/operators.crt") $pair -}}
{{- $own := dict "apiVersion" "dispatcher.dev/v1alpha1" "kind" "DispatcherConfiguration"
  "listen" ":8443" "tls" $tls "admin" (dict "listen" ":8081" "tls" $adminTLS)
  "sources" $sources "lameDuck" (printf "%ds" (int .Values.lameDuckSeconds)) -}}
{{- if $roots -}}{{- $_ := set $own "fileRoots" $roots -}}{{- end -}}
{{- toYaml (mergeOverwrite (deepCopy .Values.configuration) $own) -}}
{{- end -}}
