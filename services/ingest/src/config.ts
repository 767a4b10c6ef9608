import { hostname } from "node:os";
import { basename } from "node:path";
import { servicesKeySetting, workspaceSetting } from "@tapedeck/shared/service/common-settings";
import { durationForm, durationMs } from "@tapedeck/shared/service/duration";
import { type ConnectionLimits, connectionLimits } from "@tapedeck/shared/service/grpc-listener";
import { type HealthAddress, healthSettings } from "@tapedeck/shared/service/health";
import { loginName } from "@tapedeck/shared/service/login-name";
import { type NatsSettings, natsSettings } from "@tapedeck/shared/service/nats";
import { refuseOpenHosts, servicesOnly } from "@tapedeck/shared/service/open-hosts";
import { type SettingsReader, type SettingsSources, settingsReader } from "@tapedeck/shared/service/settings";
import type { TlsFiles } from "@tapedeck/shared/service/tls/certificate";
import { servicesCertificate } from "@tapedeck/shared/service/tls/settings";
import { namePart } from "@tapedeck/shared/source";
import { type UpstreamName, upstreamNames } from "@tapedeck/shared/upstreams";
import { z } from "zod";
import type { NewSourceBounds, RecordingTimes } from "./record/recorder-options.ts";

/** The settings of ingest, as they were read at the start. */
export type IngestConfig = {
  readonly workspace: string;
  readonly grpc: { readonly host: string; readonly port: number };
  readonly connectionLimits: ConnectionLimits;
  readonly health: HealthAddress;
  readonly nats: NatsSettings;
  /** The key of the services; empty: any client that reaches the port may push. */
  readonly servicesKey: string;
  /** Undefined: gRPC is plaintext. */
  readonly tls: TlsFiles | undefined;
  readonly sources: readonly SourceConfig[];
  /** Seconds that sessions stay after their end, and that text lives in the log; undefined: for ever. */
  readonly retention: {
    readonly facts: number | undefined;
    readonly text: number | undefined;
    /** Not from settings: how often tests have sessions looked for that are too old. */
    readonly everyMs?: number;
  };
  readonly newSources: NewSourceBounds;
  /** Recordings with `redact: off` are refused. */
  readonly requireRedact: boolean;
  /** How often the whole log is read, first at the start, and at most how many messages a second. */
  readonly check: { readonly everyMs: number; readonly rate: number };
  /** The bounds of all sources together. */
  readonly spill: SpillBounds;
  /** After which a session whose tap does not come back is taken to be over. */
  readonly lostAfterMs: number;
  /** Not from settings: tests that are not about these times make them longer. */
  readonly times?: RecordingTimes;
};

/** Where taps in ingest spill, and how much. */
export type SpillBounds = { readonly dir: string; readonly memoryBytes: number; readonly diskBytes: number };

/** An upstream that this ingest taps itself. */
export type SourceConfig = z.infer<typeof sourceSchema>;

const switched = z
  .union([z.enum(["on", "off"]), z.boolean()], { error: 'expected "on" or "off"' })
  .transform((value): "on" | "off" => (value === "on" || value === true ? "on" : "off"));

const text = z.string({ error: "expected text" }).min(1, { error: "expected text" });

const addressForm = "expected host:port, such as 127.0.0.1:50051";

/** In ms, of `min` or more; `otherwise` in ms, too. */
const duration = (min: number, otherwise: number, description: string) =>
  z
    .unknown()
    .transform((value, context) => {
      const ms = durationMs(value);
      if (ms !== undefined && ms >= min) return ms;
      context.addIssue({ code: "custom", message: `expected ${durationForm}, ${min} ms or more` });
      return z.NEVER;
    })
    .default(otherwise)
    .meta({ description, form: min === 0 ? "duration" : `duration, ${min}ms or more`, isDuration: true });

/** A part of the source's name: `otherwise` depends on the machine, `otherwiseText` describes it. */
const nameText = (otherwise: () => string, otherwiseText: string, description: string) =>
  text.default(otherwise).meta({ description, form: "text", defaultText: otherwiseText });

const folderName = () => basename(process.cwd());

const developer = nameText(() => loginName(), "login name", "The developer: the second part of the source's name.");
const project = nameText(folderName, "the folder's name", "The project: the third part of the source's name.");

const upstreamName = <T extends string>(name: T, description: string) =>
  z.literal(name).meta({ description, form: `\`${name}\`` });

const everySource = {
  address: z
    .string({ error: addressForm })
    .regex(/^\S+:\d{1,5}$/, { error: addressForm })
    .refine((address) => Number(/\d+$/.exec(address)?.[0] ?? 0) <= 65_535, { error: addressForm })
    .meta({ description: "Where the upstream listens.", form: "`host:port`" }),
  labels: z.record(z.string(), z.coerce.string()).default({}).meta({
    description: "Labels that every session of the source has, such as `{ team: checkout }`.",
    form: "mapping of texts",
    defaultText: "none",
  }),
  redact: switched.default("on").meta({
    description: "Mask secrets before anything is stored ([secrets](secrets.md)).",
    form: "`on`, `off`",
  }),
  standby: z.boolean({ error: "expected true or false" }).default(false).meta({
    description: "Wait for the log before dialling, and dial only if nobody else does.",
    form: "`true`, `false`",
  }),
};

const strict = {
  error: (issue: z.core.$ZodRawIssue) =>
    issue.code === "unrecognized_keys" ? `unknown: ${issue.keys.join(", ")}` : undefined,
};

const callTimeout = duration(10, 10_000, "Time that one call may take.");

const skaffoldSource = z.strictObject(
  {
    upstream: z.literal("skaffold").meta({
      description: "A Skaffold; `address` is its `--rpc-port`.",
      form: "`skaffold`",
      defaultText: "`skaffold`",
    }),
    developer,
    project,
    ...everySource,
    logs: switched.default("on").meta({
      description: "Record the output of the application's containers.",
      form: "`on`, `off`",
    }),
  },
  strict,
);

/** A rkt host is `<workspace>/<host>/host/rkt`. */
const rktSource = z.strictObject(
  {
    upstream: upstreamName("rkt", "A rkt host; `address` is that of its `rkt api-service`."),
    developer: nameText(hostname, "this machine's name", "The host's name: the second part of the source's name."),
    project: text.default("host").meta({ description: "The third part of the source's name.", form: "text" }),
    ...everySource,
    logs: switched.default("off").meta({
      description: "Record the output of the apps. `on` needs a rkt that was built with journal support.",
      form: "`on`, `off`",
    }),
    interval: duration(
      10,
      1_000,
      "Time between two polls: shorter while something changes, longer if lists are long (`load`).",
    ),
    timeout: callTimeout,
    load: z.coerce
      .number("expected percent of a processor, such as 2")
      .min(0.1, "expected 0.1 or more")
      .max(100, "expected 100 or less")
      .default(2)
      .meta({
        description: "The most that polls may take, in percent of one processor of the host.",
        form: "percent",
      }),
    extinction_hold: duration(
      0,
      600_000,
      "How long to wait before recording that everything is gone, in case the data directory is not mounted.",
    ),
  },
  strict,
);

/**
 * A Vagrant server lives inside a command; this one lives longer. Observations follow its activity: no interval is set.
 */
const vagrantSource = z.strictObject(
  {
    upstream: upstreamName("vagrant", "A Vagrant server that outlives a command."),
    developer,
    project,
    ...everySource,
    timeout: callTimeout,
  },
  strict,
);

/** A new name in `upstreamNames` stops this file from compiling until the settings of its sources are added here. */
const sourceSchemas = {
  skaffold: skaffoldSource,
  rkt: rktSource,
  vagrant: vagrantSource,
} satisfies Record<UpstreamName, z.ZodObject>;

/** Names of settings that a `SourceConfig` has in ms, and that people write with a unit. */
export const sourceDurations: ReadonlySet<string> = new Set(
  Object.values(sourceSchemas).flatMap(({ shape }) =>
    Object.entries<z.ZodType>(shape).flatMap(([name, setting]) => (setting.meta()?.isDuration === true ? [name] : [])),
  ),
);

const { skaffold: firstSchema, ...otherSchemas } = sourceSchemas;

/** The upstream decides which other settings there are. Default: Skaffold. */
const sourceSchema = z.preprocess(
  (value) =>
    typeof value === "object" && value !== null && !("upstream" in value) ? { ...value, upstream: "skaffold" } : value,
  z.discriminatedUnion("upstream", [firstSchema, ...Object.values(otherSchemas)], {
    error: (issue) =>
      issue.code === "invalid_union" ? `expected one of ${upstreamNames.join(", ")}` : "expected { address, … }",
  }),
);

/** What of a source's settings is for its upstream's tap and reading alone, as text. */
export function upstreamSettings(source: SourceConfig): Readonly<Record<string, string>> {
  switch (source.upstream) {
    case "skaffold":
      return {};
    case "vagrant":
      return { timeout: String(source.timeout) };
    case "rkt": {
      const { interval, timeout, load, extinction_hold } = source;
      return {
        interval: String(interval),
        timeout: String(timeout),
        load: String(load),
        extinctionHold: String(extinction_hold),
      };
    }
  }
}

const sourcesSchema = z
  .array(sourceSchema, { error: "expected a list of sources, such as [{ developer, project, address }]" })
  .superRefine((sources, context) => {
    const seen = new Set<string>();
    for (const [i, { developer, project, upstream }] of sources.entries()) {
      const name = [namePart(developer), namePart(project), upstream].join("/");
      if (seen.has(name)) context.addIssue({ code: "custom", path: [i], message: `${name} is listed twice` });
      seen.add(name);
    }
  });

/** Reads the environment and tapedeck.yaml once, at start-up. Throws one SettingsError that lists every problem. */
export function readConfig(sources: SettingsSources): IngestConfig {
  const read = settingsReader(sources);
  const config = ingestSettings(read);
  read.assertValid();
  return config;
}

/** Reads the settings of ingest. */
export function ingestSettings(read: SettingsReader): IngestConfig {
  const config = {
    workspace: workspaceSetting(read),
    grpc: {
      host: read.string("ingest.grpc.host", "127.0.0.1", {
        description: "Where ingest listens.",
      }),
      port: read.port("ingest.grpc.port", 7054, { description: "gRPC of ingest, for the gateway only." }),
    },
    connectionLimits: connectionLimits(read),
    health: healthSettings(read, "ingest", 7061),
    nats: natsSettings(read),
    servicesKey: servicesKeySetting(read),
    tls: servicesCertificate(read),
    sources: read.custom<readonly SourceConfig[], readonly SourceConfig[]>("sources", sourcesSchema, [], {
      description: "The upstreams that ingest dials and records itself.",
    }),
    retention: { facts: factsRetention(read), text: textRetention(read) },
    lostAfterMs: read.duration("ingest.lostAfter", 600_000, {
      min: 10,
      description:
        "How long a tap may be away until its session is given up (`session.lost`). Its source is `lost` after 15 s, or half of this.",
    }),
    newSources: {
      perTokenHour: read.integer("ingest.sources.perTokenHour", 100, {
        min: 1,
        description: "New sources of a token in an hour, at each ingest.",
      }),
      perWorkspace: read.integer("ingest.sources.perWorkspace", 10_000, {
        min: 1,
        description: "Sources of a workspace. Those of the setting `sources` are always recorded.",
      }),
    },
    requireRedact: read.boolean("ingest.requireRedact", false, {
      description: "Refuses recordings with `redact: off` ([secrets](secrets.md)).",
    }),
    check: {
      everyMs: read.duration("ingest.check.every", 24 * 3_600_000, {
        min: 10,
        description:
          "How often ingest reads the whole log to find [damage](reliability.md#damage-to-the-logs-files), beside its start.",
      }),
      rate: read.integer("ingest.check.rate", 2_000, {
        min: 1,
        description: "Messages a second that a check reads at most.",
      }),
    },
    spill: {
      dir: read.string("ingest.spill.dir", ".tapedeck/spill", {
        description: "Folder of items that wait while the log is unavailable; with `tapedeck up` in its data folder.",
      }),
      memoryBytes: read.integer("ingest.spill.memoryBytes", 64 * MiB, {
        unit: "bytes",
        description: `Memory for these items. The sources share it evenly, with at least ${leastOfSource.memoryBytes / MiB} MiB each.`,
      }),
      diskBytes: read.integer("ingest.spill.diskBytes", 1024 * MiB, {
        unit: "bytes",
        description: `Disk space for them. The sources share it evenly, with at least ${leastOfSource.diskBytes / MiB} MiB each.`,
      }),
    },
  };
  const unmasked = config.sources.find(({ redact }) => redact === "off");
  if (config.requireRedact && unmasked !== undefined) {
    const { developer, project } = unmasked;
    read.addError(`sources: ${developer}/${project} has "redact: off", which ingest.requireRedact forbids`);
  }
  const { grpc, health, servicesKey } = config;
  const hosts = [["ingest.grpc.host", grpc.host] as const, ["ingest.health.host", health.host] as const];
  refuseOpenHosts(read, hosts, servicesOnly(servicesKey));
  return config;
}

const MiB = 1024 * 1024;

/** With less, a spill would write every burst to disk, and free its space there (by files of 8 MiB) all at once. */
const leastOfSource = { memoryBytes: 1 * MiB, diskBytes: 16 * MiB } as const;

/** Each source's share of the common bounds: even parts, but no useless ones. */
export function spillOfEach({ dir, memoryBytes, diskBytes }: SpillBounds, sources: number): SpillBounds {
  const part = (all: number, least: number) => Math.max(Math.floor(all / Math.max(sources, 1)), Math.min(all, least));
  return {
    dir,
    memoryBytes: part(memoryBytes, leastOfSource.memoryBytes),
    diskBytes: part(diskBytes, leastOfSource.diskBytes),
  };
}

function textRetention(read: SettingsReader): number | undefined {
  return retention(read, "text", "text stays", {
    defaultText: "none: for ever",
    description:
      "How long text stays in the log, such as `30d`; 1s or more. Facts stay, as do the output of failed steps and rows of `query.textRows` in the tables. A workspace may have its own: `tapedeck workspace retention`.",
  });
}

function factsRetention(read: SettingsReader): number | undefined {
  return retention(read, "facts", "sessions stay", {
    defaultText: "none: for ever",
    description:
      "How long a session stays after its end, in the log and the tables, such as `90d`; 1s or more. Builds stay counted by day, without developers. A workspace may have its own: `tapedeck workspace retention`.",
  });
}

/** The log counts in whole seconds. */
function retention(
  read: SettingsReader,
  name: "facts" | "text",
  what: string,
  more: { readonly defaultText: string; readonly description: string },
): number | undefined {
  const ms = read.duration(`retention.${name}`, undefined, more);
  if (ms !== undefined && ms < 1_000)
    read.addError(`retention.${name}: expected 1s or more; without it ${what} for ever`);
  return ms === undefined ? undefined : Math.ceil(ms / 1_000);
}
