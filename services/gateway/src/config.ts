import { type NatsSettings, natsSettings } from "@tapedeck/shared/service/nats";
import { type SettingsReader, type SettingsSources, settingsReader } from "@tapedeck/shared/service/settings";
import { z } from "zod";
import { splitAddress } from "./transports/address.ts";

/** An extra listener bound to one source, for clients that can't say which one they mean. */
export type Endpoint = {
  /** developer/project, or in full. */
  readonly source: string;
  /** "host:port" of what is to listen; at least one of the two. */
  readonly grpc?: string | undefined;
  readonly http?: string | undefined;
};

export type GatewayConfig = {
  readonly grpc: { readonly host: string; readonly port: number };
  readonly http: { readonly host: string; readonly port: number };
  readonly nats: NatsSettings;
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

const address = z
  .string()
  .refine((text) => splitAddress(text) !== undefined, "expected host:port, such as 127.0.0.1:50051");

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
    nats: natsSettings(read),
    query: read.string("query.address", "127.0.0.1:7053"),
    ingest: read.string("ingest.address", "127.0.0.1:7054"),
    servicesKey: read.string("services.key", ""),
    workspace: read.string("workspace", "default"),
    hosts: read.list("gateway.hosts", []),
    origins: read.list("gateway.origins", []),
    endpoints: read.custom<readonly Endpoint[], readonly Endpoint[]>("endpoints", endpoints, []),
  };
  if (!insecure) {
    for (const [key, host] of hostsOf(config)) {
      if (isLoopback(host)) continue;
      read.problem(
        `${key}: "${host}" is not loopback, and there is no authentication: use 127.0.0.1, or insecure: true to let everyone in`,
      );
    }
  }
  return config;
}

/** Everything that will listen, by its key. */
function hostsOf({ grpc, http, endpoints }: GatewayConfig): (readonly [key: string, host: string])[] {
  const ofEndpoints = endpoints.flatMap((endpoint, index) =>
    (["grpc", "http"] as const).flatMap((kind) => {
      const at = endpoint[kind] === undefined ? undefined : splitAddress(endpoint[kind]);
      return at === undefined ? [] : [[`endpoints.${index}.${kind}`, at.host] as const];
    }),
  );
  return [["gateway.grpc.host", grpc.host], ["gateway.http.host", http.host], ...ofEndpoints];
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || /^127(\.\d{1,3}){3}$/.test(host);
}
