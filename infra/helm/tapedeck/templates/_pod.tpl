{{- /* A variable from a secret: dict "name" "secret" (name and key). */ -}}
{{- define "tapedeck.secretEnv" -}}
- name: {{ .name }}
  valueFrom:
    secretKeyRef:
      name: {{ .secret.name }}
      key: {{ .secret.key }}
{{- end -}}

{{- /* Variables of all services. They take precedence over the settings file. */ -}}
{{- define "tapedeck.commonEnv" -}}
{{- $existing := .Values.log.existing -}}
- name: POD_IP
  valueFrom:
    fieldRef:
      fieldPath: status.podIP
- name: TAPEDECK_CONFIG
  value: /etc/tapedeck/tapedeck.yaml
- name: TAPEDECK_NATS_URL
  value: {{ include "tapedeck.natsUrl" . | quote }}
- name: TAPEDECK_NATS_SYNC_ALWAYS
  value: "true"
{{- if gt (int .Values.log.replicas) 1 }}
- name: TAPEDECK_NATS_REPLICAS
  value: {{ .Values.log.replicas | toString | quote }}
{{- end }}
{{- if .Values.log.passwordSecret.name }}
- name: TAPEDECK_NATS_USER
  value: {{ .Values.log.user | quote }}
{{ include "tapedeck.secretEnv" (dict "name" "TAPEDECK_NATS_PASSWORD" "secret" .Values.log.passwordSecret) }}
{{- end }}
{{ include "tapedeck.secretEnv" (dict "name" "TAPEDECK_SERVICES_KEY" "secret" .Values.servicesKeySecret) }}
{{- if $existing.caSecret.name }}
- name: NODE_EXTRA_CA_CERTS
  value: /run/nats-ca/{{ $existing.caSecret.key }}
{{- end }}
{{- end -}}

{{- /*
The pod of a service: dict "ctx" $ "component" "query" "about" (the component's values) "env" "ports" "volumes" "mounts" (as
YAML), "health" (port, and scheme if it is not HTTP) and "patience" (seconds to stop in).
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
      args:
        - {{ .component }}
      env:
        {{- include "tapedeck.commonEnv" .ctx | nindent 8 }}
        {{- .env | nindent 8 }}
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
        {{- if .ctx.Values.log.existing.caSecret.name }}
        - name: nats-ca
          mountPath: /run/nats-ca
          readOnly: true
        {{- end }}
        {{- with .mounts }}
        {{- . | nindent 8 }}
        {{- end }}
  volumes:
    - name: tmp
      emptyDir: {}
    - name: settings
      configMap:
        name: {{ include "tapedeck.fullname" .ctx }}
    {{- with .ctx.Values.log.existing.caSecret }}
    {{- if .name }}
    - name: nats-ca
      secret:
        secretName: {{ .name }}
    {{- end }}
    {{- end }}
    {{- with .volumes }}
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
