import { hostname, userInfo } from "node:os";
import { basename } from "node:path";
import { type DoorLimits, doorLimits } from "@tapedeck/shared/service/grpc-listener";
import { type HealthPlace, healthSettings } from "@tapedeck/shared/service/health";
import { type NatsSettings, natsSettings } from "@tapedeck/shared/service/nats";
import { refuseOpenHosts, servicesOnly } from "@tapedeck/shared/service/open-hosts";
import {
  durationForm,
  durationMs,
  type SettingsReader,
  type SettingsSources,
  settingsReader,
} from "@tapedeck/shared/service/settings";
import { namePart } from "@tapedeck/shared/source";
import { upstreamNames } from "@tapedeck/shared/upstreams";
import { z } from "zod";

export type IngestConfig = {
  readonly workspace: string;
  readonly grpc: { readonly host: string; readonly port: number };
  readonly door: DoorLimits;
  readonly health: HealthPlace;
  readonly nats: NatsSettings;
  /** Of the services; empty: whoever reaches the port may push. */
  readonly servicesKey: string;
  readonly sources: readonly SourceConfig[];
  /** Seconds that text lives in the log; undefined: for ever. */
  readonly retention: { readonly textTtl: number | undefined };
  /** All of the log is read so often, at the start for the first time, at most so many messages a second. */
  readonly check: { readonly everyMs: number; readonly rate: number };
  /** Of all sources together. */
  readonly spill: SpillBounds;
  /** After which a session whose tap does not come back is taken to be over. */
  readonly lostAfterMs: number;
};

export type SpillBounds = { readonly dir: string; readonly memoryBytes: number; readonly diskBytes: number };

/** An upstream that this ingest taps itself. */
export type SourceConfig = z.infer<typeof sourceSchema>;

const switched = z
  .union([z.enum(["on", "off"]), z.boolean()], { error: 'expected "on" or "off"' })
  .transform((value): "on" | "off" => (value === "on" || value === true ? "on" : "off"));

const text = z.string({ error: "expected text" }).min(1, { error: "expected text" });

const addressForm = "expected host:port, such as 127.0.0.1:50051";

/** In ms, of `min` or more. */
const duration = (min: number) =>
  z.unknown().transform((value, context) => {
    const ms = durationMs(value);
    if (ms !== undefined && ms >= min) return ms;
    context.addIssue({ code: "custom", message: `expected ${durationForm}, ${min} ms or more` });
    return z.NEVER;
  });

const everySource = {
  address: z
    .string({ error: addressForm })
    .regex(/^\S+:\d{1,5}$/, { error: addressForm })
    .refine((address) => Number(/\d+$/.exec(address)?.[0] ?? 0) <= 65_535, { error: addressForm }),
  /** Of every session. */
  labels: z.record(z.string(), z.coerce.string()).default({}),
  /** Mask secrets before the log. */
  redact: switched.default("on"),
  /** Wait for the log before dialling, and dial only when nobody else does. */
  standby: z.boolean({ error: "expected true or false" }).default(false),
};

const strict = {
  error: (issue: z.core.$ZodRawIssue) =>
    issue.code === "unrecognized_keys" ? `unknown: ${issue.keys.join(", ")}` : undefined,
};

const skaffoldSource = z.strictObject(
  {
    upstream: z.literal("skaffold"),
    developer: text.default(() => userInfo().username),
    project: text.default(() => basename(process.cwd())),
    ...everySource,
    /** Record what the application's containers print. */
    logs: switched.default("on"),
  },
  strict,
);

/** A rkt host is `<workspace>/<host>/host/rkt`. */
const rktSource = z.strictObject(
  {
    upstream: z.literal("rkt"),
    developer: text.default(() => hostname()),
    project: text.default("host"),
    ...everySource,
    /** Record what the apps print: needs an api-service that was built with journal support. */
    logs: switched.default("off"),
    /** Between two looks at the host; it is looked at more often while something changes. */
    interval: duration(10).default(1_000),
    /** Of one call. */
    timeout: duration(10).default(10_000),
    /** Percent of one of the host's processors that looks may take, of pods and images together. */
    load: z.coerce
      .number("expected percent of a processor, such as 2")
      .min(0.1, "expected 0.1 or more")
      .max(100, "expected 100 or less")
      .default(2),
    /** How long a host that seems empty after a reconnect is taken for a directory that is not mounted. */
    extinction_hold: duration(0).default(600_000),
  },
  strict,
);

/** A Vagrant server lives inside of a command; this one lives longer. Looks follow what goes on there: no interval is set. */
const vagrantSource = z.strictObject(
  {
    upstream: z.literal("vagrant"),
    developer: text.default(() => userInfo().username),
    project: text.default(() => basename(process.cwd())),
    ...everySource,
    /** Of one call. */
    timeout: duration(10).default(10_000),
  },
  strict,
);

/** Which upstream it is decides what else there is to say; without a word it is Skaffold. */
const sourceSchema = z.preprocess(
  (given) =>
    typeof given === "object" && given !== null && !("upstream" in given) ? { ...given, upstream: "skaffold" } : given,
  z.discriminatedUnion("upstream", [skaffoldSource, rktSource, vagrantSource], {
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
      if (seen.has(name)) context.addIssue({ code: "custom", path: [i], message: `${name} is there twice` });
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

export function ingestSettings(read: SettingsReader): IngestConfig {
  const config = {
    workspace: namePart(read.string("workspace", "default")),
    grpc: { host: read.string("ingest.grpc.host", "127.0.0.1"), port: read.port("ingest.grpc.port", 7054) },
    door: doorLimits(read),
    health: healthSettings(read, "ingest", 7061),
    nats: natsSettings(read),
    servicesKey: read.string("services.key", ""),
    sources: read.custom<readonly SourceConfig[], readonly SourceConfig[]>("sources", sourcesSchema, []),
    retention: { textTtl: textTtl(read) },
    lostAfterMs: read.duration("ingest.lostAfter", 600_000, { min: 10 }),
    check: {
      everyMs: read.duration("ingest.check.every", 24 * 3_600_000, { min: 10 }),
      rate: read.integer("ingest.check.rate", 2_000, { min: 1 }),
    },
    spill: {
      dir: read.string("ingest.spill.dir", ".tapedeck/spill"),
      memoryBytes: read.integer("ingest.spill.memoryBytes", 64 * MiB),
      diskBytes: read.integer("ingest.spill.diskBytes", 1024 * MiB),
    },
  };
  const { grpc, health, servicesKey } = config;
  const hosts = [["ingest.grpc.host", grpc.host] as const, ["ingest.health.host", health.host] as const];
  refuseOpenHosts(read, hosts, servicesOnly(servicesKey));
  return config;
}

const MiB = 1024 * 1024;

/** Less would make a spill write every burst to disk, and free its space there (by files of 8 MiB) all at once. */
const leastOfSource = { memoryBytes: 1 * MiB, diskBytes: 16 * MiB } as const;

/** What each of so many sources may take of the bounds of all: even parts, but no useless ones. */
export function spillOfEach({ dir, memoryBytes, diskBytes }: SpillBounds, sources: number): SpillBounds {
  const part = (all: number, least: number) => Math.max(Math.floor(all / Math.max(sources, 1)), Math.min(all, least));
  return {
    dir,
    memoryBytes: part(memoryBytes, leastOfSource.memoryBytes),
    diskBytes: part(diskBytes, leastOfSource.diskBytes),
  };
}

/** The log counts it in whole seconds. */
function textTtl(read: SettingsReader): number | undefined {
  const ms = read.duration("retention.text", undefined);
  if (ms !== undefined && ms < 1_000)
    read.problem("retention.text: expected 1s or more; without it text stays for ever");
  return ms === undefined ? undefined : Math.ceil(ms / 1_000);
}
