{{- /* Objects that every service has: dict "ctx" $ "component" "query" "suffix" "query" and what each names. */ -}}

{{- /* "maxUnavailable" */ -}}
{{- define "tapedeck.podDisruptionBudget" -}}
{{ include "tapedeck.head" (merge (dict "version" "policy/v1" "kind" "PodDisruptionBudget") .) }}
spec:
  maxUnavailable: 1
  selector:
    matchLabels:
      {{- include "tapedeck.selector" . | nindent 6 }}
{{- end -}}

{{- /* "port" (its name in the Service) and "endpoint" (YAML of what else the endpoint has) */ -}}
{{- define "tapedeck.serviceMonitor" -}}
{{ include "tapedeck.head" (merge (dict "version" "monitoring.coreos.com/v1" "kind" "ServiceMonitor") .) }}
  {{- with .ctx.Values.serviceMonitors.labels }}
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  selector:
    matchLabels:
      {{- include "tapedeck.selector" . | nindent 6 }}
  endpoints:
    - port: {{ .port }}
      interval: {{ .ctx.Values.serviceMonitors.interval }}
      {{- with .endpoint }}
      {{- . | nindent 6 }}
      {{- end }}
{{- end -}}

{{- /* "ingress" (YAML: who may come) and "egress" (YAML: where it goes beside the name server and the log) */ -}}
{{- define "tapedeck.networkPolicy" -}}
{{ include "tapedeck.head" (merge (dict "version" "networking.k8s.io/v1" "kind" "NetworkPolicy") .) }}
spec:
  podSelector:
    matchLabels:
      {{- include "tapedeck.selector" . | nindent 6 }}
  policyTypes:
    - Ingress
    - Egress
  ingress:
    {{- .ingress | nindent 4 }}
  egress:
    - ports:
        - port: 53
          protocol: UDP
        - port: 53
          protocol: TCP
    - ports:
        - port: {{ include "tapedeck.natsPort" .ctx }}
    {{- with .egress }}
    {{- . | nindent 4 }}
    {{- end }}
{{- end -}}

{{- /* An ingress rule for the pods of another component: dict "ctx" "component" "port" */ -}}
{{- define "tapedeck.fromComponent" -}}
- from:
    - podSelector:
        matchLabels:
          {{- include "tapedeck.selector" . | nindent 10 }}
  ports:
    - port: {{ .port }}
{{- end -}}

{{- /* An ingress rule for whoever reads metrics: dict "ctx" "port" */ -}}
{{- define "tapedeck.fromMetrics" -}}
{{- with .ctx.Values.networkPolicy.metricsFrom -}}
- from:
    {{- toYaml . | nindent 4 }}
  ports:
    - port: {{ $.port }}
{{- end -}}
{{- end -}}

{{- /* An egress rule for the pods of a component: dict "ctx" "component" "port" */ -}}
{{- define "tapedeck.toComponent" -}}
- to:
    - podSelector:
        matchLabels:
          {{- include "tapedeck.selector" . | nindent 10 }}
  ports:
    - port: {{ .port }}
{{- end -}}
