import type { NatsConnection } from "nats";
import type { Logger } from "../service/logger.ts";
import { connectNats, type NatsSettings } from "../service/nats.ts";
import { backoff, delay } from "../sync/delay.ts";
import { type Log, LogUnusableError, openLog } from "./jetstream.ts";

/** Disposing closes the connection too. */
export type ConnectedLog = Log & { readonly nats: NatsConnection };

export type ConnectLogOptions<T> = {
  /** Name of the connection. */
  readonly service: string;
  readonly settings: NatsSettings;
  readonly logger: Logger;
  readonly signal: AbortSignal;
  /** Logged once, at the first failure. */
  readonly awayMessage: string;
  readonly historyReaders?: number;
  /** The longest delay between two attempts. */
  readonly maxDelayMs?: number;
  /** Errors that do not go away by themselves. Default: LogUnusableError. */
  readonly isFinal?: (error: unknown) => boolean;
  /**
   * Builds what the caller needs, as part of the attempt. The result owns the log. If this rejects, the log is disposed and
   * the attempt has failed.
   */
  readonly prepare: (log: ConnectedLog) => Promise<T>;
};

/**
 * Opens the log on a connection of its own, and retries until it succeeds. Resolves with undefined when the signal aborts.
 * Rejects with the first final error.
 */
export async function connectLog<T>(options: ConnectLogOptions<T>): Promise<T | undefined> {
  const { settings, logger, signal, awayMessage, maxDelayMs = 500 } = options;
  const { isFinal = (error) => error instanceof LogUnusableError } = options;
  const delays = backoff(100, maxDelayMs);
  const warned = new Set<string>();
  for (let isFirst = true; !signal.aborted; isFirst = false) {
    try {
      return await attempt(options, warned);
    } catch (error) {
      if (isFinal(error)) throw error;
      if (isFirst) logger.warn({ url: settings.url, err: error }, awayMessage);
      await delay(delays.next(), signal);
    }
  }
  return undefined;
}

async function attempt<T>(options: ConnectLogOptions<T>, warned: Set<string>): Promise<T> {
  const { service, settings, logger, historyReaders, prepare } = options;
  await using stack = new AsyncDisposableStack();
  const nats = await connectNats(service, settings, logger);
  stack.defer(() => nats.close());
  let isOpen = false;
  const log = stack.use(
    await openLog(nats, {
      syncKnown: settings.syncAlways ?? false,
      ...(historyReaders !== undefined && { historyReaders }),
      warn(message, fields) {
        // An opening warns of the same each time that it is tried.
        if (isOpen || !warned.has(message)) logger.warn({ ...fields }, message);
        warned.add(message);
      },
    }),
  );
  isOpen = true;
  const owned = new AsyncDisposableStack();
  const result = await prepare({ ...log, nats, [Symbol.asyncDispose]: () => owned.disposeAsync() });
  owned.use(stack.move());
  return result;
}
