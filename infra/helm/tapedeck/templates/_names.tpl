{{- define "tapedeck.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- /* Room is left for the suffix of each object. */ -}}
{{- define "tapedeck.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- $name := include "tapedeck.name" . -}}
{{- ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- /* What selects the pods of a component: dict "ctx" $ "component" "query". */ -}}
{{- define "tapedeck.selector" -}}
app.kubernetes.io/name: {{ include "tapedeck.name" .ctx }}
app.kubernetes.io/instance: {{ .ctx.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "tapedeck.labels" -}}
{{- with .ctx.Values.labels }}
{{- toYaml . }}
{{ end -}}
helm.sh/chart: {{ printf "%s-%s" .ctx.Chart.Name .ctx.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/version: {{ .ctx.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .ctx.Release.Service }}
{{ include "tapedeck.selector" . }}
{{- end -}}

{{- /* The beginning of every object: also "kind", "version" (apiVersion) and "suffix" of its name. */ -}}
{{- define "tapedeck.head" -}}
apiVersion: {{ .version }}
kind: {{ .kind }}
metadata:
  name: {{ include "tapedeck.fullname" .ctx }}{{ with .suffix }}-{{ . }}{{ end }}
  namespace: {{ .ctx.Release.Namespace }}
  labels:
    {{- include "tapedeck.labels" . | nindent 4 }}
{{- end -}}

{{- define "tapedeck.image" -}}
{{- with .Values.image -}}
{{- .repository -}}{{ ternary (printf "@%s" .digest) (printf ":%s" (default $.Chart.AppVersion .tag)) (ne .digest "") }}
{{- end -}}
{{- end -}}

{{- /* The log's NATS; of a cluster all servers, with commas between. */ -}}
{{- define "tapedeck.natsUrl" -}}
{{- if .Values.nats.enabled -}}
  {{- $name := include "nats.fullname" .Subcharts.nats -}}
  {{- $cluster := .Values.nats.config.cluster -}}
  {{- $scheme := ternary "tls" "nats" (dig "nats" "tls" "enabled" false .Values.nats.config) -}}
  {{- if $cluster.enabled -}}
    {{- $servers := list -}}
    {{- range $i := until (int $cluster.replicas) -}}
      {{- $servers = append $servers (printf "%s://%s-%d.%s-headless:4222" $scheme $name $i $name) -}}
    {{- end -}}
    {{- join "," $servers -}}
  {{- else -}}
    {{ $scheme }}://{{ $name }}:4222
  {{- end -}}
{{- else -}}
{{- .Values.log.existing.url -}}
{{- end -}}
{{- end -}}

{{- define "tapedeck.natsPort" -}}
{{- $port := regexFind ":[0-9]+/?$" (include "tapedeck.natsUrl" .) | trimPrefix ":" | trimSuffix "/" -}}
{{- default "4222" $port -}}
{{- end -}}

{{- define "tapedeck.postgresSecret" -}}
{{- if .Values.postgres.cloudNativePG.cluster -}}
name: {{ .Values.postgres.cloudNativePG.cluster }}-app
key: uri
{{- else -}}
{{- toYaml .Values.postgres.urlSecret -}}
{{- end -}}
{{- end -}}

{{- /* Whether an address or URL of one host is within the cluster: "true" or nothing. An IP address never is. */ -}}
{{- define "tapedeck.isInside" -}}
{{- if regexMatch "^([^.[]+|.+\\.svc(\\.cluster\\.local)?)$" (include "tapedeck.hostOf" .) -}}true{{- end -}}
{{- end -}}

{{- /* The host of an address, or of a URL that may have a password. */ -}}
{{- define "tapedeck.hostOf" -}}
{{- regexReplaceAll "^[a-z]+://([^@/]*@)?" (trim .) "" | regexFind "^(\\[[^]]*\\]|[^:/]*)" -}}
{{- end -}}
