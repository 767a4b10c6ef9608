import { statfs } from "node:fs/promises";
import { reportCondition } from "@tapedeck/shared/service/condition";
import { startHealthServer } from "@tapedeck/shared/service/health";
import type { Logger } from "@tapedeck/shared/service/logger";
import { namePart, type SourceName, sourceName } from "@tapedeck/shared/source";
import { backoff, delay } from "@tapedeck/shared/sync/delay";
import { ulid } from "ulid";
import { type IngestConfig, spillOfEach } from "./config.ts";
import type { DamageWatch } from "./damage/damage-watch.ts";
import { watchDamage } from "./damage/watch-damage.ts";
import { type LocalSource, startLocalSource } from "./local/local-source.ts";
import { LogTrouble } from "./local/log-trouble.ts";
import { lostDetails } from "./local/lost-details.ts";
import { ingestMetrics } from "./metrics.ts";
import { normalizers } from "./normalize/normalizers.ts";
import { startPushServer } from "./record/push-server.ts";
import { recorder as openRecorder, type Store } from "./record/recorder.ts";
import { openStore } from "./store.ts";

export type SourceStatus = {
  readonly source: SourceName;
  readonly tap: string;
  /** Of sources that this process taps itself. */
  readonly address?: string;
  readonly state: string;
  readonly connected: boolean;
  /** Items that are not in the log yet. */
  readonly waiting?: number;
};

export type Ingest = AsyncDisposable & {
  readonly addresses: Readonly<Record<"grpc" | "health", string>>;
  readonly status: () => readonly SourceStatus[];
  /** Rejects when it can't go on and won't mend by itself; the message is one sentence for people. */
  readonly failed: Promise<never>;
};

/** Taps the configured sources, takes what other taps push, and writes all of it to the log. */
export async function startIngest(config: IngestConfig, logger: Logger): Promise<Ingest> {
  await using stack = new AsyncDisposableStack();
  const stop = new AbortController();
  const failing = Promise.withResolvers<never>();
  failing.promise.catch(() => {});
  const locals = new Map<SourceName, LocalSource>();
  let store: Store | undefined;

  const metrics = ingestMetrics({
    spills: () => [...locals].map(([source, { spill }]) => [source, spill()] as const),
    isFull: () => trouble.isFull,
    damage: () => damage?.state,
    connected: () => [...recorder.recording].map(([source, { connected }]) => [source, connected] as const),
  });
  const ingest = ulid();
  let damage: DamageWatch | undefined;
  let telling: Disposable | undefined;
  const warnings = () => [damage?.warning].filter((warning) => warning !== undefined);
  const opening = openStore(config.nats, ingest, logger, stop.signal).then(
    (opened) => {
      store = opened;
      if (opened !== undefined) {
        void watchOver(opened);
        void trouble.watchServer(opened.nats);
        const { recordFact } = recorder;
        telling = reportCondition(opened.nats, ingest, () => ({
          problems: trouble.problem === undefined ? [] : [trouble.problem],
          warnings: warnings(),
        }));
        damage = watchDamage({ store: opened, ingest, recordFact, ...config.check, logger, signal: stop.signal });
      }
      return opened;
    },
    (cause: unknown) => {
      logger.error({ err: cause }, "the log can't be used");
      failing.reject(cause);
      return undefined;
    },
  );
  stack.defer(async () => {
    stop.abort();
    const opened = await opening;
    telling?.[Symbol.dispose]();
    await damage?.[Symbol.asyncDispose]();
    await opened?.[Symbol.asyncDispose]();
  });

  /** Sources that an ingest before this one has left. */
  async function watchOver(opened: Store): Promise<void> {
    const waits = backoff(1_000, 30_000);
    while (!stop.signal.aborted) {
      try {
        return await recorder.surveyLostSources(opened);
      } catch (err) {
        logger.warn({ err }, "the log can't be read for sources that are lost: trying again");
        await delay(waits.next(), stop.signal);
      }
    }
  }

  const bounds = async () => {
    if (store === undefined) throw new Error("the log is away");
    return store.log.reader.bounds();
  };
  const freeBytes = async () => {
    const folder = config.nats.storeDir;
    if (folder === undefined) return undefined;
    const { bavail, bsize } = await statfs(folder);
    return bavail * bsize;
  };
  const trouble = stack.use(new LogTrouble({ bounds, logger, freeBytes }));
  const recorder = stack.use(
    openRecorder({
      store: () => store,
      normalizers,
      logger,
      textTtl: config.retention.textTtl,
      lostAfterMs: config.lostAfterMs,
      times: config.times,
      listener(source) {
        const counting = metrics.listener(source);
        return {
          ...counting,
          published(messages) {
            counting.published?.(messages);
            trouble.over();
          },
          trouble(published) {
            counting.trouble?.(published);
            trouble.met(published);
          },
        };
      },
      onRecording: (source, state) =>
        state === "began" ? metrics.recordingBegan(source) : metrics.recordingEnded(source),
    }),
  );
  const server = stack.use(
    await startPushServer({
      ...config.grpc,
      connectionLimits: config.connectionLimits,
      key: config.servicesKey,
      workspace: config.workspace,
      recorder,
      store: () => store,
      onInternal: (err) => logger.error({ err }, "a push failed"),
    }),
  );
  const health = stack.use(
    await startHealthServer({
      ...config.health,
      checks: {
        log: async () => {
          await bounds();
          await store?.assertWhole();
          return trouble.problem;
        },
      },
      metrics: metrics.registry,
      details: () => ({ ...lostDetails(recorder.lost), ...(warnings().length > 0 && { warnings: warnings() }) }),
    }),
  );

  const spill = spillOfEach(config.spill, config.sources.length);
  const starting = config.sources.map(async (source) => {
    const { developer, project, upstream } = source;
    const parts = { developer: namePart(developer), project: namePart(project), upstream };
    const name = sourceName({ workspace: config.workspace, ...parts });
    const local = await startLocalSource({
      ...{ source: name, config: source, workspace: config.workspace, spill, recorder, logger },
      upstream,
      store: (signal) => untilAborted(opening, signal),
    });
    locals.set(name, local);
  });
  // Before the recorder and the log are closed, all of them at once.
  stack.defer(async () => {
    await Promise.allSettled(starting);
    await Promise.all([...locals.values()].map((local) => local[Symbol.asyncDispose]()));
  });
  await Promise.all(starting);

  const owned = stack.move();
  return {
    addresses: { grpc: server.address, health: health.address },
    failed: failing.promise,
    status: () => [
      ...[...locals.values()].map(({ source, address, tap, state, spill }) => {
        const { nextIndex, committed } = spill();
        const connected = recorder.recording.get(source)?.connected ?? false;
        return { source, tap, address, state: state(), connected, waiting: Number(nextIndex - 1n - committed) };
      }),
      ...[...recorder.recording]
        .filter(([source]) => !locals.has(source))
        .map(([source, { tap, connected }]) => ({ source, tap, state: "pushed", connected })),
    ],
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** What the promise gives, or undefined when the signal aborts before. */
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
