import { LogUnusableError, openLog } from "@tapedeck/shared/log/jetstream";
import type { Logger } from "@tapedeck/shared/service/logger";
import { connectNats, type NatsSettings } from "@tapedeck/shared/service/nats";
import { backoff, pause } from "@tapedeck/shared/streams/pause";
import { openLeases } from "./record/lease.ts";
import { largestFrameBytes } from "./record/original.ts";
import type { Store } from "./record/recorder.ts";

/** The facts beside a frame, and the headers, have their own bounds. */
const besideFrameBytes = 600 * 1024;

export type OpenStore = Store & AsyncDisposable;

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
      return await connectStore(settings, ingest, logger);
    } catch (error) {
      // What won't mend by itself.
      if (error instanceof LogUnusableError) throw error;
      if (isFirst) logger.warn({ url: settings.url, err: error }, "the log is away: what is seen waits in the spill");
      await pause(waits.next(), signal);
    }
  }
  return undefined;
}

async function connectStore(settings: NatsSettings, ingest: string, logger: Logger): Promise<OpenStore> {
  await using stack = new AsyncDisposableStack();
  const nats = await connectNats("ingest", settings, logger);
  stack.defer(() => nats.close());
  const log = stack.use(
    await openLog(nats, {
      syncKnown: settings.syncAlways ?? false,
      warn: (message, fields) => logger.warn({ ...fields }, message),
    }),
  );
  const leases = stack.use(await openLeases(nats, ingest));
  const maxPayload = nats.info?.max_payload ?? Number.POSITIVE_INFINITY;
  const frameBytes = Math.max(64 * 1024, Math.min(largestFrameBytes, maxPayload - besideFrameBytes));
  const owned = stack.move();
  return { nats, log, leases, frameBytes, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}
