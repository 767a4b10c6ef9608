import type { Values } from "./chart.ts";

export const image = { repository: "registry.example/tapedeck" };
const existing = { url: "nats://nats.messaging.svc:4222", syncAlways: true };

/** The least that an installation says. */
export const least = { image, log: { existing }, postgres: { urlSecret: { name: "tables" } } };

export const tls = { secretName: "deck-tls" };
export const ingress = { enabled: true, className: "nginx", host: "deck.example", tlsSecretName: "deck-tls" };
export const httpRoute = { enabled: true, host: "deck.example", parentRefs: [{ name: "edge", sectionName: "https" }] };
export const cloudNativePG = { cluster: "tables", create: true };
export const servicesTls = { tls: { secretName: "services-tls" } };
/** The login to an existing NATS that has none of our users: with an empty name of the secret there is none. */
const oneUser = (name: string) => ({ enabled: true, name: "deck", passwordSecret: { name, key: "password" } });
/** A user of NATS, and where its password is. */
const login = (name: string, key: string) => ({ name, passwordSecret: { name: "tapedeck-nats", key } });
export const cluster = { enabled: true, config: { cluster: { enabled: true, replicas: 3 } } };

/** Sets of values, and how many objects of which kinds beside those that are always there. */
export const sets: Readonly<Record<string, readonly [values: Values, more?: Readonly<Record<string, number>>]>> = {
  "the least": [least],
  "an existing cluster of NATS with TLS, beyond the cluster": [
    {
      ...least,
      log: {
        replicas: 3,
        oneUser: oneUser(""),
        caSecret: { name: "nats-ca", key: "ca.crt" },
        existing: {
          url: "tls://a.example:4222,tls://b.example:4222,tls://c.example:4222",
          nodes: 3,
          syncAlways: true,
        },
      },
    },
  ],
  "NATS' own chart": [{ image, nats: { enabled: true }, postgres: least.postgres }],
  "NATS' own chart, three nodes": [{ image, nats: cluster, log: { replicas: 3 }, postgres: least.postgres }],
  "NATS' own chart, with TLS": [
    {
      image,
      nats: { enabled: true, config: { nats: { tls: { enabled: true, secretName: "nats-tls" } } } },
      log: { caSecret: { name: "nats-tls", key: "ca.crt" } },
      postgres: least.postgres,
    },
  ],
  "one user for all, as somebody says": [{ ...least, log: { existing, oneUser: oneUser("deck-nats") } }],
  "TLS between all": [
    {
      ...least,
      services: { tls: { secretName: "services-tls", ca: { name: "authority", key: "ca.pem" } } },
      log: {
        existing: { ...existing, url: "tls://nats.messaging.svc:4222" },
        caSecret: { name: "nats-ca", key: "ca.crt" },
      },
      postgres: { urlSecret: { name: "tables" }, caSecret: { name: "postgres-ca", key: "ca.crt" } },
      gateway: { tls },
    },
  ],
  "no pod for the command line": [
    { ...least, cli: { enabled: false } },
    { Deployment: -1, NetworkPolicy: -1 },
  ],
  "a Cluster of CloudNativePG that exists": [{ ...least, postgres: { cloudNativePG: { cluster: "tables" } } }],
  "a Cluster of CloudNativePG that is made": [{ ...least, postgres: { cloudNativePG } }, { Cluster: 1 }],
  "as many gateways as connections need": [
    { ...least, gateway: { autoscaling: { enabled: true, connections: 500 } } },
    { HorizontalPodAutoscaler: 1 },
  ],
  "an Ingress": [{ ...least, ingress }, { Ingress: 2 }],
  "an Ingress to gateways with TLS": [{ ...least, ingress, gateway: { tls } }, { Ingress: 2 }],
  "an HTTPRoute": [{ ...least, httpRoute }, { HTTPRoute: 1 }],
  "a load balancer": [{ ...least, gateway: { tls, service: { type: "LoadBalancer" } } }],
  "metrics for the operator of Prometheus": [
    {
      ...least,
      serviceMonitors: { enabled: true, labels: { release: "prometheus" } },
      gateway: { tls, serviceMonitor: { tokenSecret: { name: "viewer", key: "token" } } },
    },
    { ServiceMonitor: 3 },
  ],
  "metrics without a token for the gateway's": [
    { ...least, serviceMonitors: { enabled: true } },
    { ServiceMonitor: 2 },
  ],
  "no policies and budgets": [
    {
      ...least,
      networkPolicy: { enabled: false },
      ...Object.fromEntries(
        ["ingest", "query", "gateway"].map((name) => [name, { podDisruptionBudget: { enabled: false } }]),
      ),
    },
    { NetworkPolicy: -4, PodDisruptionBudget: -3 },
  ],
  "sources, two ingests, settings, a storage class and secrets for images": [
    {
      ...least,
      image: { ...image, digest: `sha256:${"0".repeat(64)}`, pullSecrets: ["registry"] },
      labels: { team: "tools" },
      ingest: { replicas: 2, spill: { size: "5Gi", storageClassName: "fast" } },
      settings: {
        workspace: "acme",
        retention: { text: "30d" },
        limits: { sql: { tempBytes: 1_073_741_824 } },
        sources: [{ upstream: "rkt", developer: "node-1", address: "10.0.0.7:15441", standby: true }],
      },
    },
  ],
};

/** The objects that are always there, by kind. */
export const always = {
  ServiceAccount: 1,
  ConfigMap: 1,
  StatefulSet: 1,
  Deployment: 3,
  Service: 3,
  PodDisruptionBudget: 3,
  NetworkPolicy: 4,
};

/** Values that are refused, and what the refusal says. */
export const refused: Readonly<Record<string, readonly [values: Values, why: RegExp]>> = {
  "no image": [{ ...least, image: {} }, /image\.repository/],
  "no NATS": [{ image, postgres: least.postgres }, /log\.existing\.url or nats\.enabled/],
  "two NATS": [{ ...least, nats: { enabled: true } }, /log\.existing\.url and nats\.enabled/],
  "an existing NATS that may not sync": [
    { ...least, log: { existing: { url: existing.url } } },
    /log\.existing\.syncAlways: without jetstream \{ sync_interval: always \}/,
  ],
  "NATS' own chart that does not sync": [
    {
      image,
      postgres: least.postgres,
      nats: { enabled: true, config: { jetstream: { merge: { sync_interval: "2m" } } } },
    },
    /nats\.config\.jetstream\.merge\.sync_interval/,
  ],
  "NATS' own chart, patched not to sync": [
    {
      image,
      postgres: least.postgres,
      nats: { enabled: true, config: { jetstream: { patch: [{ op: "remove", path: "/sync_interval" }] } } },
    },
    /sync_interval belongs into/,
  ],
  "NATS without a volume": [
    {
      image,
      postgres: least.postgres,
      nats: { enabled: true, config: { jetstream: { fileStore: { pvc: { enabled: false } } } } },
    },
    /fileStore\.pvc\.enabled/,
  ],
  "one replica on three nodes of NATS' own chart": [
    { image, nats: cluster, postgres: least.postgres },
    /log\.replicas: 1 of 3 nodes/,
  ],
  "one replica on three nodes that exist": [
    { ...least, log: { existing: { ...existing, nodes: 3 } } },
    /log\.replicas: 1 of 3 nodes/,
  ],
  "one replica on three nodes that are named": [
    {
      ...least,
      log: { existing: { ...existing, url: "nats://a.n.svc:4222,nats://b.n.svc:4222,nats://c.n.svc:4222" } },
    },
    /log\.replicas: 1 of 3 nodes/,
  ],
  "an existing NATS by an IPv6 address, without TLS": [
    { ...least, log: { existing: { ...existing, url: "nats://[2001:db8::1]:4222" } } },
    /log\.existing\.url: \[2001:db8::1\] is beyond the cluster/,
  ],
  "three replicas on one node": [{ ...least, log: { replicas: 3, existing } }, /log\.replicas: 3 is more than the 1/],
  "a NATS beyond the cluster without TLS": [
    { ...least, log: { existing: { ...existing, url: "nats://nats.example.com:4222" } } },
    /nats\.example\.com is beyond the cluster/,
  ],
  "one password for two services": [
    { ...least, log: { existing, users: { query: login("query", "ingest") } } },
    /log\.users: two of them are one user, or have one password/,
  ],
  "one user for two services": [
    { ...least, log: { existing, users: { query: login("ingest", "query") } } },
    /log\.users: two of them are one user, or have one password/,
  ],
  "a service without a user": [
    { ...least, log: { existing, users: { query: login("", "query") } } },
    /log\.users\.query: name and passwordSecret\.name are missing/,
  ],
  "one user on NATS' own chart": [
    { image, postgres: least.postgres, nats: { enabled: true }, log: { oneUser: oneUser("deck-nats") } },
    /log\.oneUser: the NATS of this chart has a user for each service/,
  ],
  "another user than NATS' own chart has": [
    { image, postgres: least.postgres, nats: { enabled: true }, log: { users: { query: login("reader", "query") } } },
    /log\.users\.query\.name: the NATS of this chart calls this user query/,
  ],
  "another password than NATS' own chart has": [
    { image, postgres: least.postgres, nats: { enabled: true }, log: { users: { query: login("query", "reader") } } },
    /TAPEDECK_NATS_QUERY_PASSWORD name different secrets/,
  ],
  "NATS' own chart with TLS of somebody unknown": [
    {
      image,
      postgres: least.postgres,
      nats: { enabled: true, config: { nats: { tls: { enabled: true, secretName: "nats-tls" } } } },
    },
    /log\.caSecret/,
  ],
  "no Postgres": [{ image, log: { existing } }, /postgres\.urlSecret\.name or/],
  "two Postgres": [
    { ...least, postgres: { urlSecret: { name: "tables" }, cloudNativePG: { cluster: "tables" } } },
    /postgres\.urlSecret\.name and/,
  ],
  "a load balancer without TLS": [{ ...least, gateway: { service: { type: "LoadBalancer" } } }, /without TLS/],
  "a node's port without TLS, by a merge": [
    { ...least, gateway: { service: { merge: { spec: { type: "NodePort" } } } } },
    /NodePort opens the gateway beyond the cluster without TLS/,
  ],
  "query for everybody, by a patch": [
    { ...least, query: { service: { patch: [{ op: "add", path: "/spec/type", value: "LoadBalancer" }] } } },
    /query\.service: only the gateway/,
  ],
  "an Ingress without TLS": [{ ...least, ingress: { ...ingress, tlsSecretName: "" } }, /ingress\.tlsSecretName/],
  "an Ingress that loses its TLS": [
    { ...least, ingress: { ...ingress, grpc: { patch: [{ op: "remove", path: "/spec/tls" }] } } },
    /ingress: without spec\.tls/,
  ],
  "a route to listeners of any kind": [
    { ...least, httpRoute: { ...httpRoute, parentRefs: [{ name: "edge" }] } },
    /edge without sectionName/,
  ],
  "a route without tokens": [{ ...least, httpRoute, auth: "none" }, /auth: without tokens/],
  "ports and addresses by settings": [
    {
      ...least,
      settings: {
        gateway: { hosts: ["deck.example.com"], http: { port: 8080 } },
        query: { address: "elsewhere:7053", health: { port: 8062 } },
        ingest: { grpc: { host: "127.0.0.1" }, spill: { dir: "/tmp/spill" } },
      },
    },
    /settings\.gateway\.hosts:.*settings\.gateway\.http:.*settings\.ingest\.grpc:.*settings\.query\.address:.*settings\.query\.health:.*settings\.ingest\.spill\.dir:/s,
  ],
  "insecure by settings": [{ ...least, settings: { insecure: true } }, /settings\.insecure/],
  "a source that two ingests read": [
    { ...least, ingest: { replicas: 2 }, settings: { sources: [{ address: "10.0.0.7:15441" }] } },
    /standby: true/,
  ],
  "a provider's secret in the settings": [
    { ...least, settings: { oidc: { issuer: "https://id.example.com", clientSecret: "s" } } },
    /settings\.oidc\.clientSecret: a ConfigMap would hold it/,
  ],
  "a value that is no value": [{ ...least, querry: {} }, /Additional property querry/],
  "a patch of nothing": [
    { ...least, query: { deployment: { patch: [{ op: "replace", path: "/spec/replica", value: 1 }] } } },
    /patch \{ op: replace, path: \/spec\/replica \}: there is no "replica"/,
  ],
  "a patch beyond the end": [
    { ...least, query: { service: { patch: [{ op: "add", path: "/spec/ports/3", value: {} }] } } },
    /there is no item "3", of 2/,
  ],
};
