import { isWorkspacePattern } from "@tapedeck/shared/log/workspaces/log-settings";
import {
  type DeveloperVisibility,
  developerVisibility,
  servicesKeySetting,
} from "@tapedeck/shared/service/common-settings";
import { type ConnectionLimits, connectionLimits } from "@tapedeck/shared/service/grpc-listener";
import { type HealthAddress, healthSettings } from "@tapedeck/shared/service/health";
import { isLoopback } from "@tapedeck/shared/service/loopback";
import { type NatsSettings, natsSettings } from "@tapedeck/shared/service/nats";
import { refuseOpenHosts, servicesOnly } from "@tapedeck/shared/service/open-hosts";
import { queryTimeout } from "@tapedeck/shared/service/query-timeout";
import { type SettingsReader, type SettingsSources, settingsReader } from "@tapedeck/shared/service/settings";
import type { TlsFiles } from "@tapedeck/shared/service/tls/certificate";
import { servicesCertificate } from "@tapedeck/shared/service/tls/settings";
import { nameForm } from "@tapedeck/shared/source";
import { type ReaderLimits, readerLimits } from "./db/access/limits.ts";
import { defaultLimits } from "./projecting/batches.ts";
import { leavingMs } from "./projecting/take-over/leaving.ts";
import { splitQueryAddress } from "./projecting/take-over/query-address.ts";

/** What the metrics of recorded work distinguish. */
const metricsBy = ["project", "workspace"] as const;

/** The settings of query, as they were read at the start. */
export type QueryConfig = {
  readonly grpc: { readonly host: string; readonly port: number };
  readonly connectionLimits: ConnectionLimits;
  readonly health: HealthAddress;
  readonly nats: NatsSettings;
  /** Its user owns the database, creates schemas in it, and creates the role tapedeck_analyst if it may. */
  readonly databaseUrl: string;
  /** The password of tapedeck_analyst. Without it the role can only be granted to logins. */
  readonly analystPassword: string | undefined;
  /** Logins for SQL see the rows of these developers. */
  readonly developers: DeveloperVisibility;
  /** The limits of its logins. */
  readonly readers: ReaderLimits;
  /** The services' shared key; empty: callers are not authenticated. */
  readonly servicesKey: string;
  /** Undefined: gRPC is plaintext. */
  readonly tls: TlsFiles | undefined;
  /** The longest time for an answer, in ms. */
  readonly timeoutMs: number;
  /** Whether `events` has rows for log and terminal text too. */
  readonly textRows: boolean;
  /** The largest number of events in one transaction. */
  readonly batchEvents: number;
  /** What /metrics has of the recorded work. */
  readonly metrics: { readonly by: (typeof metricsBy)[number]; readonly series: number };
  /** The address by which gateways reach it; empty: it is the default query. */
  readonly advertise: string;
  /** Names and patterns of the workspaces that it takes over from the default query. */
  readonly workspaces: readonly string[];
  /** How long it keeps rows of a workspace that another query has taken over. */
  readonly leaveMs: number;
};

/** Reads the environment and tapedeck.yaml once, at start-up. Throws one SettingsError that lists every problem. */
export function readConfig(sources: SettingsSources): QueryConfig {
  const read = settingsReader(sources);
  const config = querySettings(read);
  read.assertValid();
  return config;
}

/** Reads the settings of query. */
export function querySettings(read: SettingsReader): QueryConfig {
  const timeoutMs = queryTimeout(read);
  const host = read.string("query.grpc.host", "127.0.0.1", { description: "Where query listens." });
  const config = {
    grpc: { host, port: read.port("query.grpc.port", 7053, { description: "gRPC of query, for the gateway only." }) },
    connectionLimits: connectionLimits(read),
    health: healthSettings(read, "query", 7062),
    nats: natsSettings(read),
    databaseUrl: read.string("postgres.url", "postgres://postgres@127.0.0.1:7043/tapedeck", {
      description:
        "A Postgres of yours, whose user owns the database. Of several (`postgres://user@a:5432,b:5432/tapedeck`, [cluster](cluster.md)) query uses the one that takes writes. Without it `tapedeck up` starts the bundled Postgres.",
    }),
    analystPassword: read.string("postgres.analystPassword", undefined, {
      defaultText: "none; created by `tapedeck up` for the bundled Postgres",
      description: "With it `tapedeck_analyst` may log in to your Postgres; otherwise grant that role to others.",
    }),
    developers: developerVisibility(read),
    readers: readerLimits(read),
    servicesKey: servicesKeySetting(read),
    tls: servicesCertificate(read),
    timeoutMs,
    leaveMs: leavingMs(timeoutMs),
    textRows: read.boolean("query.textRows", false, {
      description: "Whether log text has rows in the table `events`.",
    }),
    batchEvents: read.integer("query.batchEvents", defaultLimits.events, {
      min: 1,
      max: 10_000,
      description: "The most events of one transaction.",
    }),
    metrics: metricsSettings(read),
    ...assignedSettings(read, host),
  };
  const { grpc, health, servicesKey } = config;
  const hosts = [["query.grpc.host", grpc.host] as const, ["query.health.host", health.host] as const];
  refuseOpenHosts(read, hosts, servicesOnly(servicesKey));
  return config;
}

/** Reads how much /metrics says about the recorded work. */
function metricsSettings(read: SettingsReader): QueryConfig["metrics"] {
  return {
    by: read.oneOf("query.metrics.by", metricsBy, "project", {
      description:
        "What `/metrics` of query tells apart in the recorded work: projects in their workspaces, or workspaces alone ([Prometheus and Grafana](grafana.md)).",
    }),
    series: read.integer("query.metrics.series", 12_000, {
      max: 200_000,
      description:
        "The most series that `/metrics` of query has of the recorded work. Projects that were used last come first, and counts before durations.",
    }),
  };
}

/** Reads which workspaces a query beside the default one takes over. */
function assignedSettings(read: SettingsReader, host: string): Pick<QueryConfig, "advertise" | "workspaces"> {
  const workspaces = read.list("query.workspaces", [], {
    defaultText: "all that no other query has",
    description:
      "Workspaces that this query takes over, with a database of its own: names, or patterns such as `team-*`. It needs `query.advertise` ([a second query](operations.md#a-second-query)).",
  });
  const advertise = read.string("query.advertise", "", {
    description: "The address by which gateways reach a query with `query.workspaces`. The default query has none.",
  });
  for (const pattern of workspaces.filter((one) => !isWorkspacePattern(one))) {
    read.addError(`query.workspaces: "${pattern}" is no workspace and no pattern of some: a name is ${nameForm}`);
  }
  const address = splitQueryAddress(advertise);
  if (advertise !== "" && address === undefined) {
    read.addError(`query.advertise: "${advertise}" is not host:port, such as 10.0.0.3:7053`);
  }
  if (address !== undefined && isLoopback(address.host) && !isLoopback(host)) {
    read.addError(
      `query.advertise: "${advertise}" is this machine alone, and query.grpc.host (${host}) is not: name the address by which gateways reach it`,
    );
  }
  if (workspaces.length > 0 && advertise === "") {
    read.addError("query.workspaces: it needs query.advertise, the address by which gateways reach this query");
  }
  return { advertise, workspaces };
}
