{{- /* What this chart does not render, because it would lose data or give it away. All reasons at once, and no value
switches this off: on Kubernetes one word, such as LoadBalancer, exposes a server. */ -}}
{{- define "tapedeck.refusals" -}}
{{- $v := .Values -}}
{{- $why := list -}}

{{- if not $v.image.repository -}}
  {{- $why = append $why "image.repository: Tapedeck's image is not published. Build infra/docker/Dockerfile, push it to a registry of yours, and name it here." -}}
{{- end -}}

{{- /* The log */ -}}
{{- $existing := $v.log.existing -}}
{{- /* Each URL is a server; one URL may be the Service of several. */ -}}
{{- $nodes := max (int $existing.nodes) (len (splitList "," ($existing.url | default "") | compact)) -}}
{{- if $v.nats.enabled -}}
  {{- $config := $v.nats.config -}}
  {{- $nodes = ternary (int $config.cluster.replicas) 1 $config.cluster.enabled -}}
  {{- if $existing.url -}}
    {{- $why = append $why "log.existing.url and nats.enabled: the log has one NATS. Give one of them." -}}
  {{- end -}}
  {{- if not $config.jetstream.enabled -}}
    {{- $why = append $why "nats.config.jetstream.enabled: the log is a JetStream stream. Set it to true." -}}
  {{- end -}}
  {{- if ne (toString (dig "sync_interval" "" ($config.jetstream.merge | default dict))) "always" -}}
    {{- $why = append $why "nats.config.jetstream.merge.sync_interval: without \"always\" a power cut loses events that were acknowledged. Set it." -}}
  {{- end -}}
  {{- $others := list $config.patch $config.merge $config.jetstream.patch | toJson -}}
  {{- if contains "sync_interval" $others -}}
    {{- $why = append $why "nats.config: sync_interval belongs into nats.config.jetstream.merge, and nowhere else." -}}
  {{- end -}}
  {{- if not (dig "fileStore" "pvc" "enabled" true $config.jetstream) -}}
    {{- $why = append $why "nats.config.jetstream.fileStore.pvc.enabled: the log would be gone with its pod. Set it to true." -}}
  {{- end -}}
  {{- if $v.log.oneUser.enabled -}}
    {{- $why = append $why "log.oneUser: the NATS of this chart has a user for each service. Leave it." -}}
  {{- end -}}
  {{- range $user, $login := $v.log.users -}}
    {{- if ne $login.name $user -}}
      {{- $why = append $why (printf "log.users.%s.name: the NATS of this chart calls this user %s." $user $user) -}}
    {{- end -}}
    {{- $variable := printf "TAPEDECK_NATS_%s_PASSWORD" (upper $user) -}}
    {{- $password := dig "env" $variable "valueFrom" "secretKeyRef" (dict "name" "" "key" "") ($v.nats.container | default dict) -}}
    {{- if ne (toJson (pick $password "name" "key")) (toJson (pick $login.passwordSecret "name" "key")) -}}
      {{- $why = append $why (printf "log.users.%s.passwordSecret and nats.container.env.%s name different secrets: give the same one." $user $variable) -}}
    {{- end -}}
  {{- end -}}
  {{- if and (dig "nats" "tls" "enabled" false $config) (not $v.log.caSecret.name) -}}
    {{- $why = append $why "nats.config.nats.tls: the services must know who signed that certificate. Name the secret in log.caSecret." -}}
  {{- end -}}
{{- else if not $existing.url -}}
  {{- $why = append $why "log.existing.url or nats.enabled: the log needs a NATS. Give one of them." -}}
{{- else -}}
  {{- if not $existing.syncAlways -}}
    {{- $why = append $why "log.existing.syncAlways: without jetstream { sync_interval: always } in that NATS' configuration a power cut loses events that were acknowledged. Set it there, and then this to true." -}}
  {{- end -}}
  {{- range $url := splitList "," $existing.url -}}
    {{- if not (or (include "tapedeck.isInside" $url) (hasPrefix "tls://" (trim $url))) -}}
      {{- $why = append $why (printf "log.existing.url: %s is beyond the cluster, and passwords and events would go there without TLS. Use tls://…" (include "tapedeck.hostOf" $url)) -}}
    {{- end -}}
  {{- end -}}
{{- end -}}
{{- if not $v.log.oneUser.enabled -}}
  {{- $names := list -}}
  {{- $secrets := list -}}
  {{- range $user, $login := $v.log.users -}}
    {{- if not (and $login.name $login.passwordSecret.name) -}}
      {{- $why = append $why (printf "log.users.%s: name and passwordSecret.name are missing." $user) -}}
    {{- end -}}
    {{- $names = append $names $login.name -}}
    {{- $secrets = append $secrets (toJson (pick $login.passwordSecret "name" "key")) -}}
  {{- end -}}
  {{- if or (ne (len (uniq $names)) (len $names)) (ne (len (uniq $secrets)) (len $secrets)) -}}
    {{- $why = append $why "log.users: two of them are one user, or have one password, so that whoever has the gateway could delete the log. Give each its own (infra/nats/tapedeck-users.conf), or say log.oneUser.enabled." -}}
  {{- end -}}
{{- end -}}
{{- $replicas := int $v.log.replicas -}}
{{- if and (gt $nodes 1) (lt $replicas 3) -}}
  {{- $why = append $why (printf "log.replicas: %d of %d nodes would have the log, and it stops, or is lost, with that node. Set it to 3." $replicas $nodes) -}}
{{- end -}}
{{- if gt $replicas $nodes -}}
  {{- $why = append $why (printf "log.replicas: %d is more than the %d nodes of this NATS. Set nats.config.cluster, or log.existing.nodes." $replicas $nodes) -}}
{{- end -}}

{{- /* Postgres */ -}}
{{- $pg := $v.postgres -}}
{{- if and $pg.urlSecret.name $pg.cloudNativePG.cluster -}}
  {{- $why = append $why "postgres.urlSecret.name and postgres.cloudNativePG.cluster: give one of them." -}}
{{- else if not (or $pg.urlSecret.name $pg.cloudNativePG.cluster) -}}
  {{- $why = append $why "postgres.urlSecret.name or postgres.cloudNativePG.cluster: the tables need a Postgres. Give one of them." -}}
{{- end -}}

{{- /* Beyond the cluster: with TLS and tokens only */ -}}
{{- $hasTls := ne $v.gateway.tls.secretName "" -}}
{{- if and $v.ingress.enabled (not $v.ingress.tlsSecretName) -}}
  {{- $why = append $why "ingress.tlsSecretName: the gateway is not opened beyond the cluster without TLS. Name a secret of type kubernetes.io/tls." -}}
{{- end -}}
{{- if and $v.ingress.enabled (not $v.ingress.host) -}}
  {{- $why = append $why "ingress.host: missing." -}}
{{- end -}}
{{- if $v.httpRoute.enabled -}}
  {{- if not $v.httpRoute.host -}}{{- $why = append $why "httpRoute.host: missing." -}}{{- end -}}
  {{- if not $v.httpRoute.parentRefs -}}{{- $why = append $why "httpRoute.parentRefs: missing." -}}{{- end -}}
  {{- range $v.httpRoute.parentRefs -}}
    {{- if not .sectionName -}}
      {{- $why = append $why (printf "httpRoute.parentRefs: %s without sectionName takes listeners without TLS too. Name the listener of protocol HTTPS." .name) -}}
    {{- end -}}
  {{- end -}}
  {{- if $hasTls -}}
    {{- $why = append $why "httpRoute and gateway.tls: the route's Gateway ends TLS. Give one of them." -}}
  {{- end -}}
{{- end -}}
{{- if and (ne $v.auth "tokens") (or (ne $v.gateway.service.type "ClusterIP") $v.ingress.enabled $v.httpRoute.enabled) -}}
  {{- $why = append $why "auth: without tokens everybody who reaches the gateway could read all, and control upstreams. Set it to tokens." -}}
{{- end -}}

{{- /* Sources that ingest dials */ -}}
{{- if gt (int $v.ingest.replicas) 1 -}}
  {{- range $v.settings.sources -}}
    {{- if not .standby -}}
      {{- $why = append $why (printf "settings.sources: %v would be read by each ingest while NATS is away. Set standby: true." .address) -}}
    {{- end -}}
  {{- end -}}
{{- end -}}

{{- /* What the chart sets itself */ -}}
{{- range $key := list "insecure" "auth" "tls" "nats" "postgres" "services" -}}
  {{- if hasKey $v.settings $key -}}
    {{- $why = append $why (printf "settings.%s: the chart sets this. Use its own values." $key) -}}
  {{- end -}}
{{- end -}}
{{- /* Variables take precedence over settings, and Services, probes, policies and the spill's volume have these alone. */ -}}
{{- $fixed := dict
      "gateway" (list "hosts" "grpc" "http")
      "query" (list "address" "grpc" "health")
      "ingest" (list "address" "grpc" "health")
-}}
{{- range $service, $keys := $fixed -}}
  {{- range $key := $keys -}}
    {{- if hasKey (dig $service dict ($v.settings | default dict)) $key -}}
      {{- $why = append $why (printf "settings.%s.%s: the chart sets this. Use its own values." $service $key) -}}
    {{- end -}}
  {{- end -}}
{{- end -}}
{{- if dig "ingest" "spill" "dir" "" ($v.settings | default dict) -}}
  {{- $why = append $why "settings.ingest.spill.dir: the chart sets this, to the volume of ingest.spill." -}}
{{- end -}}

{{- /* Secrets are references: settings become a ConfigMap */ -}}
{{- if ($v.settings.oidc | default dict).clientSecret -}}
  {{- $why = append $why "settings.oidc.clientSecret: a ConfigMap would hold it. Give the gateway TAPEDECK_OIDC_CLIENT_SECRET from a secret, by gateway.deployment.patch." -}}
{{- end -}}

{{- with $why -}}{{- fail (printf "\n  %s\n" (join "\n  " .)) -}}{{- end -}}
{{- end -}}

{{- /*
What is refused of an object as it will be written, whichever values, merge and patch made it so: dict "ctx" $ "component"
"doc".
*/ -}}
{{- define "tapedeck.refusedObject" -}}
{{- $spec := .doc.spec | default dict -}}
{{- if eq .doc.kind "Service" -}}
  {{- $type := default "ClusterIP" $spec.type -}}
  {{- $isOpen := or (has $type (list "LoadBalancer" "NodePort")) (not (empty $spec.externalIPs)) -}}
  {{- if and $isOpen (ne .component "gateway") -}}
    {{- fail (printf "\n  %s.service: only the gateway is for clients beyond the cluster." .component) -}}
  {{- end -}}
  {{- if and $isOpen (eq .ctx.Values.gateway.tls.secretName "") -}}
    {{- fail (printf "\n  gateway.service: %s opens the gateway beyond the cluster without TLS. Set gateway.tls.secretName, or use ingress or httpRoute." $type) -}}
  {{- end -}}
  {{- if and $isOpen (ne .ctx.Values.auth "tokens") -}}
    {{- fail "\n  auth: without tokens everybody who reaches the gateway could read all, and control upstreams. Set it to tokens." -}}
  {{- end -}}
{{- else if and (eq .doc.kind "Ingress") (empty $spec.tls) -}}
  {{- fail "\n  ingress: without spec.tls the gateway would be open beyond the cluster without TLS." -}}
{{- end -}}
{{- end -}}
