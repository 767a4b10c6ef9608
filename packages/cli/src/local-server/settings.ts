import { existsSync } from "node:fs";
import { hostname } from "node:os";
import { join, resolve } from "node:path";
import { type ConfiguredSink, gatewaySettings } from "@tapedeck/gateway/for-cli/settings";
import type { Secrets } from "@tapedeck/infra/local/secrets";
import { ingestSettings, type SourceConfig, sourceDurations } from "@tapedeck/ingest/for-cli/settings";
import { querySettings } from "@tapedeck/query/for-cli/settings";
import { loginName } from "@tapedeck/shared/service/login-name";
import { envName, loadSettingsFile, type SettingsReader, settingsReader } from "@tapedeck/shared/service/settings";
import { certificateError } from "@tapedeck/shared/service/tls/certificate";
import { demoWorkspace } from "@tapedeck/shared/source";
import type { UpOptions } from "../commands/up/options.ts";
import { environmentVariables, logLevels } from "../environment-variables.ts";
import { projectName } from "../recording/project-name.ts";
import { vagrantProject } from "../recording/vagrant-project.ts";
import { analystPassword, natsUser, ownerUrl } from "./own-servers.ts";
import type { Listener } from "./ports.ts";

export type UpSettings = {
  readonly mode: "demo" | "record";
  readonly workspace: string;
  /** Its gateway asks for no token and speaks no TLS. */
  readonly isOpen: boolean;
  readonly dataDir: string;
  /** Folder of NATS, Postgres and the logs. The demo has a folder of its own. */
  readonly storeDir: string;
  readonly configFile: string | undefined;
  /** There are no sources, and yet no demo, because there is a settings file. */
  readonly isDemoOff: boolean;
  readonly sources: readonly UpSource[];
  /** The user's sinks as settings have them, and the hosts to which they may deliver. */
  readonly sinks: readonly Readonly<Record<string, unknown>>[];
  readonly sinkHosts: readonly string[];
  /** Everything that listens, by name; port 0 is still open. */
  readonly listeners: Readonly<Record<ListenerName, Listener>>;
  readonly access: GatewayAccess;
  readonly isInsecure: boolean;
  /** Somebody else's, where they are configured. */
  readonly natsUrl: string | undefined;
  readonly postgresUrl: string | undefined;
};

/** How the gateway lets people in. */
export type GatewayAccess = {
  readonly tls: boolean;
  readonly auth: "none" | "tokens";
  /** A host name that it goes by, where one is configured. */
  readonly hostName?: string | undefined;
};

/** A source as ingest's settings have it. Omitted fields have their defaults. */
export type UpSource = Pick<SourceConfig, "upstream" | "developer" | "project" | "address"> &
  Partial<Pick<SourceConfig, "labels" | "redact" | "standby">>;

const listenerNames = [
  "gatewayGrpc",
  "gatewayHttp",
  "queryGrpc",
  "queryHealth",
  "ingestGrpc",
  "ingestHealth",
  "nats",
  "postgres",
] as const;
export type ListenerName = (typeof listenerNames)[number];

/** `--insecure` has the effect of the setting. */
const insecure = { [envName("insecure")]: "true" };

/**
 * Reads the flags, the environment and tapedeck.yaml, for all services at once.
 * @throws SettingsError with every problem
 */
export function readUpSettings(options: UpOptions, processEnv: NodeJS.ProcessEnv): UpSettings {
  const env = options.insecure === true ? { ...processEnv, ...insecure } : processEnv;
  const configFile = options.config ?? (existsSync("tapedeck.yaml") ? "tapedeck.yaml" : undefined);
  const file = configFile === undefined ? undefined : loadSettingsFile(configFile);
  const read = settingsReader({ env, file });
  const gateway = gatewaySettings(read);
  const query = querySettings(read);
  const ingest = ingestSettings(read);
  const own = ownSettings(read);
  const noCertificate = gateway.tls && certificateError(gateway.tls);
  if (noCertificate !== undefined) read.addError(noCertificate);
  if (gateway.servicesCa !== undefined || query.tls !== undefined) {
    read.addError(
      "services.tls: only for services that are started one by one; those of `up` communicate on this machine only",
    );
  }
  for (const reason of [...strangeVariables(env, read.knownKeys()), ...strangeFlags(options)]) read.addError(reason);
  read.assertValid({ complete: true });

  const dataDir = resolve(options.data);
  const sources = [...ingest.sources, ...flagSources(options)];
  const isConfigured = sources.length > 0 || file !== undefined;
  const mode = options.demo === true || (options.demo === undefined && !isConfigured) ? "demo" : "record";
  const local = "127.0.0.1";
  return {
    mode,
    workspace: mode === "demo" ? demoWorkspace : ingest.workspace,
    isOpen: gateway.auth === "none" && gateway.tls === undefined,
    dataDir,
    storeDir: mode === "demo" ? join(dataDir, "demo") : dataDir,
    configFile: configFile === undefined ? undefined : resolve(configFile),
    isDemoOff: mode === "record" && options.demo === undefined && sources.length === 0,
    sources: mode === "demo" ? [] : sources,
    sinks: gateway.sinks.sinks.map((sink) => writtenSink(sink, ingest.workspace)),
    sinkHosts: gateway.sinks.allowed,
    listeners: {
      gatewayGrpc: { what: "the gateway's gRPC", key: "gateway.grpc.port", ...gateway.grpc },
      gatewayHttp: { what: "the gateway's HTTP", key: "gateway.http.port", ...gateway.http },
      queryGrpc: { what: "query", key: "query.grpc.port", ...query.grpc },
      queryHealth: { what: "query's health", key: "query.health.port", ...query.health },
      ingestGrpc: { what: "ingest", key: "ingest.grpc.port", ...ingest.grpc },
      ingestHealth: { what: "ingest's health", key: "ingest.health.port", ...ingest.health },
      nats: { what: "NATS", key: "nats.port", host: local, port: own.nats },
      postgres: { what: "Postgres", key: "postgres.port", host: local, port: own.postgres },
    },
    isInsecure: options.insecure === true,
    access: { tls: gateway.tls !== undefined, auth: gateway.auth, hostName: gateway.hosts[0] },
    natsUrl: own.natsUrl,
    postgresUrl: own.postgresUrl,
  };
}

/** A sink as it can be read again. That of the settings' own workspace goes with them into the demo's. */
function writtenSink({ workspace, sink, definition }: ConfiguredSink, own: string) {
  const { createdAt: _, ...fields } = definition;
  return { name: sink, ...fields, ...(workspace !== own && { workspace }) };
}

/** Settings that only `up` reads, or reads differently. */
export function ownSettings(read: SettingsReader) {
  return {
    natsUrl: read.string("nats.url", undefined),
    postgresUrl: read.string("postgres.url", undefined),
    nats: read.port("nats.port", 7042, { description: "Port of the bundled NATS." }),
    postgres: read.port("postgres.port", 7043, { description: "Port of the bundled Postgres." }),
  };
}

/** Variables that are no settings. `tapedeck run` sets TAPEDECK_RUN itself. */
const otherVariables: ReadonlySet<string> = new Set(["TAPEDECK_RUN", ...environmentVariables.map(({ name }) => name)]);

/** A misspelt variable would have no effect, and go unnoticed. */
function strangeVariables(env: NodeJS.ProcessEnv, keys: ReadonlySet<string>): readonly string[] {
  const known = new Set([...otherVariables, ...[...keys].map(envName)]);
  const level = env.TAPEDECK_LOG_LEVEL || "info";
  const unknown = Object.keys(env).filter((name) => name.startsWith("TAPEDECK_") && !known.has(name));
  return [
    ...(logLevels.includes(level)
      ? []
      : [`TAPEDECK_LOG_LEVEL: ${JSON.stringify(level)} is not one of ${logLevels.join(", ")}`]),
    ...unknown.map((name) => `${name}: unknown setting`),
  ];
}

/** They qualify what another flag names, and have no meaning without it. */
function strangeFlags(options: UpOptions): readonly string[] {
  const { demo, skaffold, vagrant, rkt, developer, project, hostName, label, redact } = options;
  const orphans = (needed: string, isThere: boolean, flags: Readonly<Record<string, unknown>>) =>
    Object.entries(flags).flatMap(([name, value]) =>
      isThere || value === undefined ? [] : [`--${name}: only valid with ${needed} (or set it in tapedeck.yaml)`],
    );
  const recorded = { skaffold: "Skaffold", vagrant: "Vagrant", rkt: "rkt host" } as const;
  const names = ["skaffold", "vagrant", "rkt"] as const;
  return [
    ...names
      .filter((name) => demo === true && options[name] !== undefined)
      .map((name) => `--demo: the demo does not record your own ${recorded[name]}: omit --demo or --${name}`),
    ...orphans("--skaffold or --vagrant", (skaffold ?? vagrant) !== undefined, { developer, project }),
    ...orphans("--rkt", rkt !== undefined, { "host-name": hostName }),
    ...orphans("--skaffold, --vagrant or --rkt", (skaffold ?? vagrant ?? rkt) !== undefined, { label, redact }),
  ];
}

function flagSources(options: UpOptions): readonly UpSource[] {
  const { skaffold, vagrant, rkt, developer = loginName(), project, hostName, label, redact } = options;
  const ofAll = { ...(label !== undefined && { labels: label }), ...(redact !== undefined && { redact }) };
  const folder = process.cwd();
  const demoSources = [
    { upstream: "skaffold", address: skaffold, developer, project: project ?? projectName(folder, undefined) },
    { upstream: "vagrant", address: vagrant, developer, project: project ?? vagrantProject(folder, process.env) },
    { upstream: "rkt", address: rkt, developer: hostName ?? hostname(), project: "host" },
  ] as const;
  return demoSources.flatMap(({ address, ...source }) =>
    address === undefined ? [] : [{ ...source, address, ...ofAll }],
  );
}

/**
 * The environment of this machine's services beside the user's own settings. Durations in a source are written as
 * people write them.
 */
export function serviceEnv(
  settings: UpSettings,
  listeners: UpSettings["listeners"],
  sources: readonly UpSource[],
  secrets: Secrets,
): Record<string, string> {
  const at = (name: ListenerName) => `${listeners[name].host}:${listeners[name].port}`;
  const ports = Object.values(listeners).map(({ key, port }) => [key, String(port)]);
  const nats = settings.natsUrl === undefined && [
    ["nats.url", `nats://${at("nats")}`],
    ["nats.user", natsUser],
    ["nats.password", secrets.natsPassword],
    ["nats.syncAlways", "true"],
    ["nats.storeDir", join(settings.storeDir, "nats")],
  ];
  const postgres = settings.postgresUrl === undefined && [
    ["postgres.url", ownerUrl(at("postgres"), secrets)],
    ["postgres.analystPassword", analystPassword(secrets)],
  ];
  const values = [
    ...ports,
    ...(nats || []),
    ...(postgres || []),
    ["services.key", secrets.servicesKey],
    ["query.address", at("queryGrpc")],
    ["ingest.address", at("ingestGrpc")],
    [
      "sources",
      JSON.stringify(sources, (key, value) =>
        typeof value === "number" && sourceDurations.has(key) ? `${value}ms` : value,
      ),
    ],
    ["ingest.spill.dir", join(settings.storeDir, "spill")],
    ["workspace", settings.workspace],
    // Its developers do not exist.
    ...(settings.mode === "demo" ? [["privacy.compareDevelopers", "true"]] : []),
  ];
  return {
    ...Object.fromEntries(values.map(([key = "", value = ""]) => [envName(key), value])),
    ...(settings.configFile !== undefined && { TAPEDECK_CONFIG: settings.configFile }),
    ...(settings.isInsecure && insecure),
    TAPEDECK_LOG_FORMAT: "json",
  };
}
