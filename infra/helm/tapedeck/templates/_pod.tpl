{{- /* A variable from a secret: dict "name" "secret" (name and key). */ -}}
{{- define "tapedeck.secretEnv" -}}
- name: {{ .name }}
  valueFrom:
    secretKeyRef:
      name: {{ .secret.name }}
      key: {{ .secret.key }}
{{- end -}}

{{- /*
Variables of all services: dict "ctx" $ "component" "query". They take precedence over the settings file.
*/ -}}
{{- define "tapedeck.commonEnv" -}}
{{- $log := .ctx.Values.log -}}
{{- $login := ternary $log.oneUser (get $log.users .component) $log.oneUser.enabled -}}
- name: POD_IP
  valueFrom:
    fieldRef:
      fieldPath: status.podIP
- name: TAPEDECK_CONFIG
  value: /etc/tapedeck/tapedeck.yaml
- name: TAPEDECK_NATS_URL
  value: {{ include "tapedeck.natsUrl" .ctx | quote }}
- name: TAPEDECK_NATS_SYNC_ALWAYS
  value: "true"
{{- if gt (int $log.replicas) 1 }}
- name: TAPEDECK_NATS_REPLICAS
  value: {{ $log.replicas | toString | quote }}
{{- end }}
{{- if $login.passwordSecret.name }}
- name: TAPEDECK_NATS_USER
  value: {{ $login.name | quote }}
{{ include "tapedeck.secretEnv" (dict "name" "TAPEDECK_NATS_PASSWORD" "secret" $login.passwordSecret) }}
{{- end }}
{{- if $log.caSecret.name }}
- name: TAPEDECK_NATS_CA
  value: /run/nats-ca/{{ $log.caSecret.key }}
{{- end }}
{{ include "tapedeck.secretEnv" (dict "name" "TAPEDECK_SERVICES_KEY" "secret" .ctx.Values.servicesKeySecret) }}
{{- end -}}

{{- /* What query and the command line need for Postgres. */ -}}
{{- define "tapedeck.postgresEnv" -}}
{{ include "tapedeck.secretEnv" (dict "name" "TAPEDECK_POSTGRES_URL" "secret" (include "tapedeck.postgresSecret" . | fromYaml)) }}
{{- end -}}

{{- define "tapedeck.postgresMount" -}}
{{- if .Values.postgres.caSecret.name -}}
- name: postgres-ca
  mountPath: /run/postgres-ca
  readOnly: true
{{- end -}}
{{- end -}}

{{- define "tapedeck.postgresVolume" -}}
{{- with .Values.postgres.caSecret -}}
{{- if .name -}}
- name: postgres-ca
  secret:
    secretName: {{ .name }}
    items:
      - key: {{ .key }}
        path: ca.crt
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* The certificate of query's and ingest's gRPC: what they listen with, and where it is. */ -}}
{{- define "tapedeck.listenerTlsEnv" -}}
{{- if .Values.services.tls.secretName }}
- name: TAPEDECK_SERVICES_TLS_CERT
  value: /run/services-tls/tls.crt
- name: TAPEDECK_SERVICES_TLS_KEY
  value: /run/services-tls/tls.key
{{- end }}
{{- end -}}

{{- define "tapedeck.servicesTlsMount" -}}
{{- if .Values.services.tls.secretName -}}
- name: services-tls
  mountPath: /run/services-tls
  readOnly: true
{{- end -}}
{{- end -}}

{{- define "tapedeck.listenerTlsVolume" -}}
{{- with .Values.services.tls.secretName -}}
- name: services-tls
  secret:
    secretName: {{ . }}
{{- end -}}
{{- end -}}

{{- /* How the gateway's calls of query and ingest go over the wire. */ -}}
{{- define "tapedeck.servicesProtocol" -}}
{{ ternary "https" "kubernetes.io/h2c" (ne .Values.services.tls.secretName "") }}
{{- end -}}

{{- /*
The pod of a service: dict "ctx" $ "component" "query" "about" (the component's values) "env" "ports" "volumes" "mounts" (as
YAML), "health" (port, and scheme if it is not HTTP) and "patience" (seconds to stop in). With "command" it runs that, and has
neither ports nor health.
*/ -}}
{{- define "tapedeck.podTemplate" -}}
metadata:
  labels:
    {{- include "tapedeck.labels" . | nindent 4 }}
  annotations:
    # Settings are read at the start.
    tapedeck.dev/settings: {{ toJson .ctx.Values.settings | sha256sum }}
spec:
  serviceAccountName: {{ include "tapedeck.fullname" .ctx }}
  automountServiceAccountToken: false
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ .patience }}
  {{- with .ctx.Values.image.pullSecrets }}
  imagePullSecrets:
    {{- range . }}
    - name: {{ . }}
    {{- end }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 10001
    runAsGroup: 10001
    fsGroup: 10001
    fsGroupChangePolicy: OnRootMismatch
    seccompProfile:
      type: RuntimeDefault
  topologySpreadConstraints:
    {{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
    - maxSkew: 1
      topologyKey: {{ . }}
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "tapedeck.selector" $ | nindent 10 }}
    {{- end }}
  containers:
    - name: {{ .component }}
      image: {{ include "tapedeck.image" .ctx }}
      imagePullPolicy: {{ .ctx.Values.image.pullPolicy }}
      {{- with .command }}
      command:
        {{- toYaml . | nindent 8 }}
      {{- else }}
      args:
        - {{ .component }}
      {{- end }}
      env:
        {{- include "tapedeck.commonEnv" . | nindent 8 }}
        {{- .env | nindent 8 }}
      {{- if .health }}
      ports:
        {{- .ports | nindent 8 }}
      startupProbe:
        {{- include "tapedeck.probe" (dict "health" .health "path" "/healthz") | nindent 8 }}
        periodSeconds: 2
        failureThreshold: 60
      livenessProbe:
        {{- include "tapedeck.probe" (dict "health" .health "path" "/healthz") | nindent 8 }}
        periodSeconds: 10
        failureThreshold: 6
      readinessProbe:
        {{- include "tapedeck.probe" (dict "health" .health "path" "/readyz") | nindent 8 }}
        periodSeconds: 5
        failureThreshold: 2
      {{- end }}
      {{- with .about.resources }}
      resources:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities:
          drop:
            - ALL
      volumeMounts:
        - name: tmp
          mountPath: /tmp
        - name: settings
          mountPath: /etc/tapedeck
          readOnly: true
        {{- if .ctx.Values.log.caSecret.name }}
        - name: nats-ca
          mountPath: /run/nats-ca
          readOnly: true
        {{- end }}
        {{- with trim .mounts }}
        {{- . | nindent 8 }}
        {{- end }}
  volumes:
    - name: tmp
      emptyDir: {}
    - name: settings
      configMap:
        name: {{ include "tapedeck.fullname" .ctx }}
    {{- with .ctx.Values.log.caSecret }}
    {{- if .name }}
    - name: nats-ca
      secret:
        secretName: {{ .name }}
    {{- end }}
    {{- end }}
    {{- with trim .volumes }}
    {{- . | nindent 4 }}
    {{- end }}
{{- end -}}

{{- /* The services answer requests whose Host is loopback, or a name that is allowed. */ -}}
{{- define "tapedeck.probe" -}}
httpGet:
  path: {{ .path }}
  port: {{ .health.port }}
  scheme: {{ .health.scheme | default "HTTP" }}
  httpHeaders:
    - name: Host
      value: localhost
timeoutSeconds: 5
{{- end -}}
