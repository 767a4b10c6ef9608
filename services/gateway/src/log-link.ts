import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { type Log, LogUnusableError, openLog } from "@tapedeck/shared/log/jetstream";
import { type LogReader, LogReplacedError } from "@tapedeck/shared/log/log";
import type { Logger } from "@tapedeck/shared/service/logger";
import { connectNats, type NatsSettings } from "@tapedeck/shared/service/nats";
import { backoff, pause } from "@tapedeck/shared/sync/delay";
import type { NatsConnection } from "nats";

/** The log as this process has it: away until it was reached for the first time; it may be replaced under it. */
export type LogLink = AsyncDisposable & {
  /** @throws TapedeckError not_ready until the log has been reached for the first time */
  readonly reader: () => LogReader;
  /** For requests over NATS. @throws TapedeckError not_ready while it is away: what is sent then would be queued */
  readonly line: () => NatsLine;
  /** Resolves when the log has been reached for the first time. */
  readonly opened: Promise<void>;
  /** Rejects when it won't mend by itself; the message is one sentence for people. */
  readonly failed: Promise<never>;
};

export type NatsLine = {
  readonly connection: NatsConnection;
  /** Aborts when the connection breaks: answers to what was sent on it need not come any more. */
  readonly broken: AbortSignal;
};

/** A subject that no event has. */
const nothing = "tapedeck.v1.-.-.-.-.-.-";

/** Connects in the background, again and again until the log is there, and watches that it stays the same one. */
export function linkLog(settings: NatsSettings, historyReaders: number, logger: Logger): LogLink {
  const closing = new AbortController();
  const { signal } = closing;
  const opened = Promise.withResolvers<void>();
  const failed = Promise.withResolvers<never>();
  failed.promise.catch(() => {}); // heard by whoever asks
  let nats: NatsConnection | undefined;
  let log: Log | undefined;
  let broken = new AbortController();
  broken.abort();

  async function open(): Promise<Log | undefined> {
    const retry = backoff(100, 2_000);
    for (let told = false; !signal.aborted; ) {
      try {
        nats = await connectNats("gateway", settings, logger);
        const warn = (message: string, fields?: object) => logger.warn({ ...fields }, message);
        return await openLog(nats, { syncKnown: settings.syncAlways ?? false, historyReaders, warn });
      } catch (error) {
        await nats?.close();
        nats = undefined;
        if (isFinal(error)) throw error;
        if (!told) logger.warn({ url: settings.url, err: error }, "the log is away; trying again until it is there");
        told = true;
        await pause(retry.next(), signal);
      }
    }
    return undefined;
  }

  async function watchConnection(connection: NatsConnection): Promise<void> {
    for await (const { type } of connection.status()) {
      if (type === "disconnect") broken.abort();
      if (type === "reconnect") broken = new AbortController();
    }
  }

  async function run(): Promise<void> {
    log = await open();
    if (log === undefined || nats === undefined) return;
    broken = new AbortController();
    void watchConnection(nats);
    opened.resolve();
    // Gives nothing, and throws when the log is not the one that it was.
    const everything = log.reader.follow({ afterSeq: Number.MAX_SAFE_INTEGER, subjects: [nothing] }, { signal });
    for await (const _ of everything);
  }

  const running = run().catch((error: unknown) => {
    if (!signal.aborted) failed.reject(sentence(error, settings.url));
  });

  const away = () => new TapedeckError("not_ready", "the log can't be reached: try again in a moment");
  return {
    opened: opened.promise,
    failed: failed.promise,
    reader() {
      if (log === undefined) throw away();
      return log.reader;
    },
    line() {
      if (nats === undefined || broken.signal.aborted) throw away();
      return { connection: nats, broken: broken.signal };
    },
    async [Symbol.asyncDispose]() {
      closing.abort();
      if (log === undefined) await nats?.close(); // it may be waiting for an answer
      await running;
      await log?.[Symbol.asyncDispose]();
      await nats?.close();
    },
  };
}

function isFinal(error: unknown): boolean {
  return error instanceof LogUnusableError || (error instanceof Error && error.name === "AuthorizationError");
}

function sentence(error: unknown, url: string): Error {
  if (error instanceof LogReplacedError) {
    return new Error(`${error.message}; the gateway has to start again to serve that one`, { cause: error });
  }
  if (isFinal(error) && !(error instanceof LogUnusableError)) {
    return new Error(`the nats-server at ${url} refuses nats.user and nats.password: correct them`, { cause: error });
  }
  return error instanceof Error ? error : new Error(String(error));
}
