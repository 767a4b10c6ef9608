import { jetstreamManager } from "@nats-io/jetstream";
import { type Log, LogUnusableError, openLog } from "@tapedeck/shared/log/jetstream";
import { streamName } from "@tapedeck/shared/log/subjects";
import { askTablesEnd } from "@tapedeck/shared/log/tables-end";
import type { Logger } from "@tapedeck/shared/service/logger";
import { connectNats, type NatsSettings } from "@tapedeck/shared/service/nats";
import { backoff, pause } from "@tapedeck/shared/sync/delay";
import type { NatsConnection } from "nats";
import { type LogEnds, openEnds } from "./damage/ends.ts";
import { assertLogEnd } from "./damage/log-end.ts";
import { largestFrameBytes } from "./record/frames/original.ts";
import { openLeases } from "./record/journal/lease.ts";
import type { Store } from "./record/recorder.ts";

/** The facts beside a frame, and the headers, have their own bounds. */
const besideFrameBytes = 600 * 1024;

/** How long a query that may be starting as well is waited for. */
const tablesMs = 3_000;

export type OpenStore = Store & {
  readonly log: Omit<Log, keyof AsyncDisposable> & { readonly ends: LogEnds };
} & AsyncDisposable;

/** Connects to the log, again and again until it is there. Resolves with undefined when the signal aborts. */
export async function openStore(
  settings: NatsSettings,
  ingest: string,
  logger: Logger,
  signal: AbortSignal,
): Promise<OpenStore | undefined> {
  const waits = backoff(100, 500);
  for (let isFirst = true; !signal.aborted; isFirst = false) {
    try {
      return await connectStore(settings, ingest, logger, signal);
    } catch (error) {
      // What won't mend by itself.
      if (error instanceof LogUnusableError) throw error;
      if (isFirst) logger.warn({ url: settings.url, err: error }, "the log is away: what is seen waits in the spill");
      await pause(waits.next(), signal);
    }
  }
  return undefined;
}

async function connectStore(
  settings: NatsSettings,
  ingest: string,
  logger: Logger,
  signal: AbortSignal,
): Promise<OpenStore> {
  await using stack = new AsyncDisposableStack();
  const nats = await connectNats("ingest", settings, logger);
  stack.defer(() => nats.close());
  const log = stack.use(
    await openLog(nats, {
      syncKnown: settings.syncAlways ?? false,
      warn: (message, fields) => logger.warn({ ...fields }, message),
    }),
  );
  const ends = stack.use(await openEnds(nats, { epoch: log.epoch, replicas: await replicasOf(nats) }));
  // Query has committed what was in the log; what is kept beside the log may be a second older.
  const hasQuery = (await ends.tables())?.epoch === log.epoch;
  const tables = hasQuery ? await askTablesEnd(nats, tablesMs, signal) : undefined;
  if (tables !== undefined) ends.heard(tables);
  const assertWhole = () => assertLogEnd(log, ends);
  await assertWhole();
  const leases = stack.use(await openLeases(nats, ingest));
  const maxPayload = nats.info?.max_payload ?? Number.POSITIVE_INFINITY;
  const frameBytes = Math.max(64 * 1024, Math.min(largestFrameBytes, maxPayload - besideFrameBytes));
  const owned = stack.move();
  const parts = { reader: log.reader, writer: log.writer, stored: log.stored, epoch: log.epoch, ends };
  return { nats, log: parts, assertWhole, leases, frameBytes, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

/** What stands beside the log is kept as safe as the log. */
async function replicasOf(nats: NatsConnection): Promise<number> {
  const jsm = await jetstreamManager(nats, { checkAPI: false });
  return (await jsm.streams.info(streamName)).config.num_replicas;
}
