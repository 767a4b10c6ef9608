import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { type ConnectedLog, connectLog } from "@tapedeck/shared/log/connect-log";
import { HolesWatch, type KnownHole } from "@tapedeck/shared/log/holes/known-holes";
import { LogUnusableError } from "@tapedeck/shared/log/jetstream";
import { type LogReader, LogReplacedError } from "@tapedeck/shared/log/log";
import { beyondAll } from "@tapedeck/shared/log/offset";
import type { Logger } from "@tapedeck/shared/service/logger";
import { type NatsSettings, natsHosts } from "@tapedeck/shared/service/nats";
import type { NatsConnection } from "nats";

/** This process's connection to the log, which may be unreachable at first, and be replaced by another log later. */
export type LogLink = AsyncDisposable & {
  /** @throws TapedeckError not_ready until the log has been reached for the first time */
  readonly reader: () => LogReader;
  /** What the log has lost, as far as ingest has checked it. */
  readonly holes: () => readonly KnownHole[];
  /** The messages themselves. @throws as `reader` */
  readonly stored: () => ConnectedLog["stored"];
  /**
   * For requests over NATS. @throws TapedeckError not_ready while NATS is unreachable, because requests would be queued
   */
  readonly nats: () => LiveNatsConnection;
  /** Resolves when the log has been reached for the first time. */
  readonly opened: Promise<void>;
  /** Rejects when it won't recover by itself; the message is one sentence for users. */
  readonly failed: Promise<never>;
};

export type LiveNatsConnection = {
  readonly connection: NatsConnection;
  /** Aborts when the connection breaks: answers to requests that were sent on it may never come. */
  readonly broken: AbortSignal;
};

/** A subject that no event has. */
const nothing = "tapedeck.v1.-.-.-.-.-.-";

/** Connects in the background, retries until the log is reached, and watches that it stays the same log. */
export function linkLog(settings: NatsSettings, historyReaders: number, logger: Logger): LogLink {
  return new BackgroundLogLink(settings, historyReaders, logger);
}

class BackgroundLogLink implements LogLink {
  readonly #settings: NatsSettings;
  readonly #historyReaders: number;
  readonly #logger: Logger;
  readonly #closing = new AbortController();
  readonly #opened = Promise.withResolvers<void>();
  readonly #failed = Promise.withResolvers<never>();
  readonly #running: Promise<void>;
  #log: ConnectedLog | undefined;
  #holes: HolesWatch | undefined;
  #broken = new AbortController();

  constructor(settings: NatsSettings, historyReaders: number, logger: Logger) {
    this.#settings = settings;
    this.#historyReaders = historyReaders;
    this.#logger = logger;
    this.#broken.abort();
    this.#failed.promise.catch(() => {}); // a failure that is not awaited is not an unhandled rejection
    this.#running = this.#run().catch((error: unknown) => {
      if (!this.#closing.signal.aborted) this.#failed.reject(sentence(error, settings.url));
    });
  }

  get opened(): Promise<void> {
    return this.#opened.promise;
  }

  get failed(): Promise<never> {
    return this.#failed.promise;
  }

  readonly reader = (): LogReader => {
    if (this.#log === undefined) throw away();
    return this.#log.reader;
  };

  readonly stored = (): ConnectedLog["stored"] => {
    if (this.#log === undefined) throw away();
    return this.#log.stored;
  };

  readonly holes = (): readonly KnownHole[] => this.#holes?.now() ?? [];

  readonly nats = (): LiveNatsConnection => {
    if (this.#log === undefined || this.#broken.signal.aborted) throw away();
    return { connection: this.#log.nats, broken: this.#broken.signal };
  };

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort();
    await this.#running;
    this.#holes?.[Symbol.dispose]();
    await this.#log?.[Symbol.asyncDispose]();
  }

  async #run(): Promise<void> {
    const log = await connectLog({
      service: "gateway",
      settings: this.#settings,
      logger: this.#logger,
      historyReaders: this.#historyReaders,
      signal: this.#closing.signal,
      awayMessage: "the log is unavailable; retrying until it is back",
      maxDelayMs: 2_000,
      isFinal,
      prepare: async (opened) => opened,
    });
    if (log === undefined) return;
    const warn = (message: string, fields = {}) => this.#logger.warn(fields, message);
    this.#holes = new HolesWatch({ nats: log.nats, epoch: log.epoch, warn });
    await this.#holes.loaded;
    this.#log = log;
    this.#broken = new AbortController();
    void this.#watchConnection(log.nats);
    this.#opened.resolve();
    // Yields no event, and throws when the log is replaced by another one.
    const from = { afterOffset: beyondAll, subjects: [nothing] };
    for await (const _ of log.reader.follow(from, { signal: this.#closing.signal }));
  }

  async #watchConnection(connection: NatsConnection): Promise<void> {
    for await (const { type } of connection.status()) {
      if (type === "disconnect") this.#broken.abort();
      if (type === "reconnect") this.#broken = new AbortController();
    }
  }
}

function away(): TapedeckError {
  return new TapedeckError("not_ready", "the log can't be reached: try again in a moment");
}

function isFinal(error: unknown): boolean {
  return error instanceof LogUnusableError || isRefusedUser(error);
}

/** The client has one error for a refused user and for a busy server that did not read the user in time. */
function isRefusedUser(error: unknown): boolean {
  return (
    error instanceof Error && error.name === "AuthorizationError" && !/authentication timeout/i.test(error.message)
  );
}

function sentence(error: unknown, url: string): Error {
  if (error instanceof LogReplacedError) {
    return new Error(`${error.message}; restart the gateway to serve the new one`, { cause: error });
  }
  if (isRefusedUser(error)) {
    return new Error(`the nats-server at ${natsHosts(url)} refuses nats.user and nats.password: correct them`, {
      cause: error,
    });
  }
  return error instanceof Error ? error : new Error(String(error));
}
