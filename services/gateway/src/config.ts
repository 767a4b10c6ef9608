import { type SettingsReader, type SettingsSources, settingsReader } from "@tapedeck/shared/service/settings";
import { z } from "zod";

/** An extra listener bound to one source, for clients that can't say which one they mean. */
export type Endpoint = {
  /** developer/project, or in full. */
  readonly source: string;
  readonly grpc?: string | undefined;
  readonly http?: string | undefined;
};

export type GatewayConfig = {
  readonly grpc: { readonly host: string; readonly port: number };
  readonly http: { readonly host: string; readonly port: number };
  readonly nats: { readonly url: string; readonly user: string | undefined; readonly password: string | undefined };
  /** Addresses of the services behind, and the key that they share. */
  readonly query: string;
  readonly ingest: string;
  readonly servicesKey: string;
  /** The workspace of callers without a token. */
  readonly workspace: string;
  /** Host names and origins beside loopback that requests may name. */
  readonly hosts: readonly string[];
  readonly origins: readonly string[];
  readonly endpoints: readonly Endpoint[];
};

const address = z.string().regex(/^[^\s:]+:\d{1,5}$/, "expected host:port, such as 127.0.0.1:50051");

const endpoints = z.array(
  z
    .strictObject({ source: z.string().min(1), grpc: address.optional(), http: address.optional() })
    .refine(({ grpc, http }) => grpc !== undefined || http !== undefined, "expected grpc or http with an address"),
);

/** Reads the environment and tapedeck.yaml once, at start-up. Throws one SettingsError that lists every problem. */
export function readConfig(sources: SettingsSources): GatewayConfig {
  const read = settingsReader(sources);
  const config = gatewaySettings(read);
  read.assertValid();
  return config;
}

export function gatewaySettings(read: SettingsReader): GatewayConfig {
  const insecure = read.boolean("insecure", false);
  const config: GatewayConfig = {
    grpc: { host: read.string("gateway.grpc.host", "127.0.0.1"), port: read.port("gateway.grpc.port", 7051) },
    http: { host: read.string("gateway.http.host", "127.0.0.1"), port: read.port("gateway.http.port", 7052) },
    nats: {
      url: read.string("nats.url", "nats://127.0.0.1:7042"),
      user: read.string("nats.user", undefined),
      password: read.string("nats.password", undefined),
    },
    query: read.string("query.address", "127.0.0.1:7053"),
    ingest: read.string("ingest.address", "127.0.0.1:7054"),
    servicesKey: read.string("services.key", ""),
    workspace: read.string("workspace", "default"),
    hosts: read.list("gateway.hosts", []),
    origins: read.list("gateway.origins", []),
    endpoints: read.custom<readonly Endpoint[], readonly Endpoint[]>("endpoints", endpoints, []),
  };
  for (const [key, { host }] of [
    ["gateway.grpc.host", config.grpc] as const,
    ["gateway.http.host", config.http] as const,
  ]) {
    if (!insecure && !isLoopback(host)) {
      read.problem(
        `${key}: "${host}" is not loopback, and there is no authentication: use 127.0.0.1, or insecure: true to let everyone in`,
      );
    }
  }
  return config;
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || /^127(\.\d{1,3}){3}$/.test(host);
}
