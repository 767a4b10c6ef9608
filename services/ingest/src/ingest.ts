import type { WaitingResponse } from "@tapedeck/proto/tapedeck/v1/maintain";
import { startHealthServer } from "@tapedeck/shared/service/health";
import type { Logger } from "@tapedeck/shared/service/logger";
import type { Service } from "@tapedeck/shared/service/process/lifecycle";
import { openCertificate } from "@tapedeck/shared/service/tls/certificate";
import { namePart, type SourceName, sourceName } from "@tapedeck/shared/source";
import { type IngestConfig, spillOfEach } from "./config.ts";
import { IngestLog } from "./ingest-log.ts";
import { type LocalSource, startLocalSource } from "./local/local-source.ts";
import { lostDetails } from "./local/lost-details.ts";
import type { PublishFailures } from "./local/publish-failures.ts";
import { ingestMetrics } from "./metrics.ts";
import { normalizers } from "./normalize/normalizers.ts";
import { startPushServer } from "./record/push-server.ts";
import type { SessionRecorderListener } from "./record/pushed-session.ts";
import { Recorder } from "./record/recorder.ts";

/** The tap of a configured source. */
export type TapStatus = {
  readonly source: SourceName;
  readonly tap: string;
  /** The address of a source that this process taps itself. */
  readonly address?: string;
  readonly state: string;
  readonly connected: boolean;
  /** Items that are not in the log yet. */
  readonly waiting?: number;
};

/** A running ingest. Disposing it ends its taps and its recorders. */
export type Ingest = AsyncDisposable & {
  readonly addresses: Readonly<Record<"grpc" | "health", string>>;
  readonly status: () => readonly TapStatus[];
  /** Rejects on a failure that will not resolve by itself; the message is one sentence for people. */
  readonly failed: Promise<never>;
  readonly reports: NonNullable<Service["reports"]>;
};

/** Taps the configured sources, takes what other taps push, and writes all of it to the log. */
export async function startIngest(config: IngestConfig, logger: Logger): Promise<Ingest> {
  await using stack = new AsyncDisposableStack();
  const locals = new Map<SourceName, LocalSource>();
  const metrics = ingestMetrics({
    spills: () => [...locals].map(([source, { spill }]) => [source, spill()] as const),
    isFull: () => log.failures.isFull,
    atQuota: () => log.full.length,
    damage: () => log.damage,
    connected: () => [...recorder.recording].map(([source, { connected }]) => [source, connected] as const),
    isRecorded: (source) => recorder.recording.has(source as SourceName),
  });
  const log: IngestLog = stack.use(new IngestLog({ config, recorder: () => recorder, logger }));
  const recorder: Recorder = stack.use(
    new Recorder({
      stores: () => log.stores,
      normalizers,
      logger,
      textTtl: (workspace) => log.retentions.of(workspace).text,
      lostAfterMs: config.lostAfterMs,
      times: config.times,
      newSources: config.newSources,
      requireRedact: config.requireRedact,
      onRefused: metrics.refused,
      listener: (source) => listenerOf(metrics.listener(source), log.failures),
      onRecording(source, state) {
        if (state === "began") metrics.recordingBegan(source);
      },
    }),
  );
  const { connectionLimits, servicesKey: key, workspace } = config;
  const { registry } = metrics;
  const warn = (message: string) => logger.warn(message);
  const certificate = config.tls && stack.use(openCertificate(config.tls, { warn, registry }));
  const server = stack.use(
    await startPushServer({
      ...config.grpc,
      certificate,
      connectionLimits,
      key,
      workspace,
      recorder,
      stores: () => log.stores,
      retentions: log.retentions,
      waiting: () => [...locals.values()].map(waitingOf),
      onInternal: (err) => logger.error({ err }, "a push failed"),
    }),
  );
  const health = stack.use(
    await startHealthServer({
      ...config.health,
      checks: { log: () => log.check() },
      metrics: registry,
      details: () => ({ ...lostDetails(recorder.lost), ...(log.warnings.length > 0 && { warnings: log.warnings }) }),
    }),
  );

  const starting = startLocals(config, log, recorder, logger, (local) => locals.set(local.source, local));
  // Before the recorder and the log are closed, all of them at once.
  stack.defer(async () => {
    await Promise.allSettled(starting);
    await Promise.all([...locals.values()].map((local) => local[Symbol.asyncDispose]()));
  });
  await Promise.all(starting);

  const owned = stack.move();
  return {
    addresses: { grpc: server.address, health: health.address },
    failed: log.failed,
    reports: (send) => log.failures.onFull((isFull) => send({ type: "log-full", isFull })),
    status: () => statusOf(locals, recorder),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** Counts, and learns from each publish how the log is. */
function listenerOf(counting: SessionRecorderListener, failures: PublishFailures): SessionRecorderListener {
  return {
    ...counting,
    published(events) {
      counting.published?.(events);
      failures.over();
    },
    onPublishFailure(published) {
      counting.onPublishFailure?.(published);
      failures.met(published);
    },
  };
}

function startLocals(
  config: IngestConfig,
  log: IngestLog,
  recorder: Recorder,
  logger: Logger,
  started: (local: LocalSource) => void,
): readonly Promise<void>[] {
  const { workspace } = config;
  const spill = spillOfEach(config.spill, config.sources.length);
  return config.sources.map(async (source) => {
    const { developer, project, upstream } = source;
    const parts = { developer: namePart(developer), project: namePart(project), upstream };
    const local = await startLocalSource({
      source: sourceName({ workspace, ...parts }),
      config: source,
      workspace,
      spill,
      recorder,
      logger,
      upstream,
      leases: async (signal) => (await untilAborted(log.opening, signal))?.leases,
    });
    started(local);
  });
}

function waitingOf({ source, spill }: LocalSource): WaitingResponse {
  const { nextIndex, committed, memoryBytes, diskBytes, dropped } = spill();
  return { source, items: nextIndex - 1n - committed, bytes: BigInt(memoryBytes + diskBytes), dropped };
}

function statusOf(locals: ReadonlyMap<SourceName, LocalSource>, { recording }: Recorder): readonly TapStatus[] {
  const tapped = [...locals.values()].map(({ source, address, tap, state, spill }) => {
    const { nextIndex, committed } = spill();
    const connected = recording.get(source)?.connected ?? false;
    return { source, tap, address, state: state(), connected, waiting: Number(nextIndex - 1n - committed) };
  });
  const pushed = [...recording]
    .filter(([source]) => !locals.has(source))
    .map(([source, { tap, connected }]) => ({ source, tap, state: "pushed", connected }));
  return [...tapped, ...pushed];
}

/** The promise's value, or undefined when the signal aborts before. */
async function untilAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  if (signal.aborted) return undefined;
  const aborted = Promise.withResolvers<undefined>();
  const abort = () => aborted.resolve(undefined);
  signal.addEventListener("abort", abort);
  try {
    return await Promise.race([promise, aborted.promise]);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}
