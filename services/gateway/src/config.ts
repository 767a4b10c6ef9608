import { type AuditBounds, defaultBounds } from "@tapedeck/shared/audit/store";
import { hostsSetting, servicesKeySetting, workspaceSetting } from "@tapedeck/shared/service/common-settings";
import { isLoopback } from "@tapedeck/shared/service/loopback";
import { type NatsSettings, natsSettings } from "@tapedeck/shared/service/nats";
import { refuseOpenHosts } from "@tapedeck/shared/service/open-hosts";
import { type SettingsReader, type SettingsSources, settingsReader } from "@tapedeck/shared/service/settings";
import type { TlsFiles } from "@tapedeck/shared/service/tls/certificate";
import { bothOrNone, servicesAuthorities } from "@tapedeck/shared/service/tls/settings";
import { z } from "zod";
import { type ProviderSettings, providerSettings } from "./auth/provider/settings.ts";
import { type Limits, limitSettings } from "./limits/settings.ts";
import { type Privacy, privacySettings } from "./privacy/settings.ts";
import { type SinkSettings, sinkSettings } from "./sinks/settings.ts";
import { splitAddress } from "./transports/address.ts";
import { originError } from "./transports/origins.ts";

/** An extra listener bound to one source, for clients that can't name a source. */
export type Endpoint = {
  /** developer/project, or in full. */
  readonly source: string;
  /** "host:port" to listen on; at least one of `grpc` and `http`. */
  readonly grpc?: string | undefined;
  readonly http?: string | undefined;
  /** With `auth: tokens`, callers without a token may read there; on loopback only. */
  readonly open?: "viewer" | undefined;
};

/** The gateway's settings, as they were read at the start. */
export type GatewayConfig = {
  readonly grpc: { readonly host: string; readonly port: number };
  readonly http: { readonly host: string; readonly port: number };
  readonly nats: NatsSettings;
  /** Addresses of query and ingest, and the key that the services share. */
  readonly query: string;
  readonly ingest: string;
  readonly servicesKey: string;
  /** PEM file of the authorities of query and ingest; undefined: plaintext. */
  readonly servicesCa: string | undefined;
  /** The workspace of callers without a token. */
  readonly workspace: string;
  /** Host names beside loopback that requests may name, and origins beside our own pages; origins may be patterns. */
  readonly hosts: readonly string[];
  readonly origins: readonly string[];
  readonly endpoints: readonly Endpoint[];
  /** The allowed callers: everyone who reaches the port, or callers with a token. */
  readonly auth: (typeof authentications)[number];
  /** What callers see of each other. */
  readonly privacy: Privacy;
  /** The provider whose people may call without a token; undefined: none. */
  readonly oidc: ProviderSettings | undefined;
  /** PEM files; undefined: without TLS. */
  readonly tls: TlsFiles | undefined;
  /** How much of the audit log is kept. */
  readonly audit: AuditBounds;
  readonly limits: Limits;
  /** Where events are delivered. */
  readonly sinks: SinkSettings;
};

const authentications = ["none", "tokens"] as const;

const address = z
  .string()
  .refine((text) => splitAddress(text) !== undefined, "expected host:port, such as 127.0.0.1:50051");

const endpoints = z.array(
  z
    .strictObject({
      source: z.string().min(1).meta({
        description: "The source that the listener is bound to: `developer/project`, or its full name.",
        form: "text",
      }),
      grpc: address.optional().meta({ description: "Where its gRPC listens.", form: "`host:port`" }),
      http: address.optional().meta({
        description: "Where its HTTP listens. At least one of `grpc` and `http` is required.",
        form: "`host:port`",
      }),
      open: z.literal("viewer", "expected viewer: more than reading needs a token").optional().meta({
        description: "Callers without a token may read there, if `auth` is `tokens`. Allowed on loopback only.",
        form: "`viewer`",
      }),
    })
    .refine(({ grpc, http }) => grpc !== undefined || http !== undefined, "expected grpc or http with an address"),
);

/** Reads the environment and tapedeck.yaml once, at start-up. Throws one SettingsError that lists every problem. */
export function readConfig(sources: SettingsSources): GatewayConfig {
  const read = settingsReader(sources);
  const config = gatewaySettings(read);
  if (config.auth !== "none" && config.servicesKey === "") {
    read.addError(
      "services.key: missing; without it anyone on this machine can bypass auth: tokens and call query and ingest",
    );
  }
  read.assertValid();
  return config;
}

/** Reads the gateway's settings. */
export function gatewaySettings(read: SettingsReader): GatewayConfig {
  const callers = callerSettings(read);
  const listeners = read.custom<readonly Endpoint[], readonly Endpoint[]>("endpoints", endpoints, [], {
    description: "Extra listeners, each bound to one source, for clients that cannot name one.",
  });
  const tls = tlsFiles(read);
  const grpc = {
    host: read.string("gateway.grpc.host", "127.0.0.1", { description: "Where gRPC listens." }),
    port: read.port("gateway.grpc.port", 7051, { description: "gRPC, for clients and taps." }),
  };
  const http = {
    host: read.string("gateway.http.host", "127.0.0.1", { description: "Where HTTP listens." }),
    port: read.port("gateway.http.port", 7052, { description: "HTTP and WebSocket." }),
  };
  const config: GatewayConfig = {
    grpc,
    http,
    nats: natsSettings(read),
    query: read.string("query.address", "127.0.0.1:7053", {
      description: "Address of query, where the services are started one by one.",
    }),
    ingest: read.string("ingest.address", "127.0.0.1:7054", {
      description: "Address of ingest, where the services are started one by one.",
    }),
    servicesKey: servicesKeySetting(read),
    ...callers,
    servicesCa: servicesAuthorities(read),
    origins: read.list("gateway.origins", [], {
      description:
        "Origins of web pages that may make requests, beside loopback; with `auth: none` they only read. Patterns: `http://localhost:*`, `vscode-webview://*`.",
    }),
    endpoints: listeners,
    privacy: privacySettings(read, { auth: callers.auth, endpoints: listeners }),
    tls,
    audit: auditBounds(read),
    limits: limitSettings(read),
    sinks: sinkSettings(read, {
      workspace: callers.workspace,
      page: callers.oidc?.page?.origin || undefined,
      http,
      hasTls: tls !== undefined,
    }),
  };
  for (const reason of config.origins.flatMap((origin) => originError(origin) ?? [])) {
    read.addError(`gateway.origins: ${reason}`);
  }
  for (const [key, host, open] of hostsOf(config)) {
    if (open === undefined || isLoopback(host)) continue;
    read.addError(`${key}: "${host}" is beyond loopback, where an endpoint can't be open: ${open}; use 127.0.0.1`);
  }
  const lacks = [
    ...(config.tls === undefined ? ["tls.cert and tls.key"] : []),
    ...(config.auth === "none" ? ["auth: tokens"] : []),
  ];
  const hosts = hostsOf(config).map(([key, host]) => [key, host] as const);
  refuseOpenHosts(read, hosts, lacks.length === 0 ? undefined : lacks.join(", "));
  return config;
}

/** Reads who may call, by which name of this machine, and as whom without a token. */
function callerSettings(read: SettingsReader): Pick<GatewayConfig, "workspace" | "hosts" | "auth" | "oidc"> {
  const workspace = workspaceSetting(read);
  const hosts = hostsSetting(read);
  const auth = read.oneOf("auth", authentications, "none", {
    description:
      "`tokens`: every call needs a token of `tapedeck token` ([for a team](team.md)), or a JWT of the provider `oidc.issuer`. `none`: anyone who can reach the port may call.",
  });
  return { workspace, hosts, auth, oidc: providerSettings(read, { auth, workspace, hosts }) };
}

function auditBounds(read: SettingsReader): AuditBounds {
  return {
    maxAgeMs: read.duration("audit.maxAge", defaultBounds.maxAgeMs, {
      min: 3_600_000,
      description: "How long the audit log keeps an entry ([who did what](team.md#who-did-what)).",
    }),
    maxBytes: read.integer("audit.maxBytes", defaultBounds.maxBytes, {
      min: 1024 * 1024,
      unit: "bytes",
      description: "The audit log's maximum size; the oldest entries go first.",
    }),
  };
}

function tlsFiles(read: SettingsReader): TlsFiles | undefined {
  const cert = read.string("tls.cert", undefined, {
    description:
      "PEM file of the certificate. With it the gateway's listeners speak TLS, except for `open` endpoints. It needs `tls.key`.",
  });
  const key = read.string("tls.key", undefined, { description: "PEM file of its private key." });
  return bothOrNone(read, "tls", cert, key);
}

/** Every host that will be listened on, by its setting. */
function hostsOf({ grpc, http, endpoints }: GatewayConfig) {
  const ofEndpoints = endpoints.flatMap((endpoint, index) =>
    (["grpc", "http"] as const).flatMap((kind) => {
      const at = endpoint[kind] === undefined ? undefined : splitAddress(endpoint[kind]);
      return at === undefined ? [] : [[`endpoints.${index}.${kind}`, at.host, endpoint.open] as const];
    }),
  );
  const own = [
    ["gateway.grpc.host", grpc.host, undefined],
    ["gateway.http.host", http.host, undefined],
  ] as const;
  return [...own, ...ofEndpoints];
}
