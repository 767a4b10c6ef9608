import { jetstreamManager } from "@nats-io/jetstream";
import { type ConnectedLog, connectLog } from "@tapedeck/shared/log/connect-log";
import type { Log } from "@tapedeck/shared/log/jetstream";
import { knownEnds } from "@tapedeck/shared/log/known-ends";
import type { LogWriter } from "@tapedeck/shared/log/log";
import { requestTablesEnd } from "@tapedeck/shared/log/tables-end";
import type { Logger } from "@tapedeck/shared/service/logger";
import type { NatsSettings } from "@tapedeck/shared/service/nats";
import { largestFrameBytes } from "./normalize/original.ts";
import { type LogEnds, openEnds } from "./record/journal/ends.ts";
import { openLeases } from "./record/journal/lease.ts";
import { assertLogEnd, assertSameLog } from "./record/journal/log-end.ts";
import { recordingDelays } from "./record/journal/recording-delays.ts";
import type { Store } from "./record/recorder-options.ts";

/** Bound of the facts beside a frame, and of the headers. */
const besideFrameBytes = 600 * 1024;

/** How long to wait for a query that may be starting too. */
const tablesMs = 3_000;

export type OpenStore = Store & {
  readonly log: Omit<Log, keyof AsyncDisposable> & { readonly ends: LogEnds };
} & AsyncDisposable;

/** Connects to the log and retries until it succeeds. Resolves with undefined when the signal aborts. */
export function openStore(
  settings: NatsSettings,
  ingest: string,
  logger: Logger,
  signal: AbortSignal,
): Promise<OpenStore | undefined> {
  return connectLog({
    service: "ingest",
    settings,
    logger,
    signal,
    awayMessage: "the log is unavailable: items wait in the spills of their taps",
    leaveOutErased: false,
    prepare: (log) => storeOn(log, ingest, signal),
  });
}

async function storeOn(log: ConnectedLog, ingest: string, signal: AbortSignal): Promise<OpenStore> {
  const { nats } = log;
  await using stack = new AsyncDisposableStack();
  const ends = stack.use(await openEnds(nats, { epoch: log.epoch }));
  assertSameLog(log, await knownEnds(await jetstreamManager(nats, { timeout: 2_000, checkAPI: false })));
  // Query has committed what was in the log. The ends that are kept beside the log may be a second older.
  const hasQuery = (await ends.tables())?.epoch === log.epoch;
  const tables = hasQuery ? await requestTablesEnd(nats, tablesMs, { signal }) : undefined;
  if (tables !== undefined) ends.tablesReported(tables);
  const assertWhole = () => assertLogEnd(log, ends);
  await assertWhole();
  const leases = stack.use(await openLeases(nats, ingest));
  const identityKey = await ends.identityKey();
  const maxPayload = nats.info?.max_payload ?? Number.POSITIVE_INFINITY;
  const frameBytes = Math.max(64 * 1024, Math.min(largestFrameBytes, maxPayload - besideFrameBytes));
  const owned = stack.move();
  const { reader, stored, epoch } = log;
  const writer = timed(log.writer);
  return {
    nats,
    log: { reader, writer, stored, epoch, ends },
    assertWhole,
    leases,
    frameBytes,
    identityKey,
    async [Symbol.asyncDispose]() {
      await owned.disposeAsync();
      await log[Symbol.asyncDispose]();
    },
  };
}

/** What its messages take is what maintenance keeps its pace by. */
function timed(writer: LogWriter): LogWriter {
  return {
    ...writer,
    async publish(...message) {
      const ended = recordingDelays.began();
      try {
        return await writer.publish(...message);
      } finally {
        ended();
      }
    },
  };
}
