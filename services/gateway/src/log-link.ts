import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { type ConnectedLogs, connectLogs } from "@tapedeck/shared/log/connect-log";
import { LogUnusableError } from "@tapedeck/shared/log/jetstream";
import type { Logger } from "@tapedeck/shared/service/logger";
import { type NatsSettings, natsHosts } from "@tapedeck/shared/service/nats";
import type { NatsConnection } from "nats";

/** This process's connection to NATS, which may be unreachable at first, and the logs of workspaces there. */
export type LogLink = AsyncDisposable & {
  /** @throws TapedeckError not_ready until NATS has been reached for the first time */
  readonly logs: () => Pick<ConnectedLogs["logs"], "of" | "names" | "forget">;
  /** What is known of workspaces beside their logs. @throws TapedeckError not_ready likewise */
  readonly workspaces: () => ConnectedLogs["workspaces"];
  /**
   * For requests over NATS. @throws TapedeckError not_ready while NATS is unreachable, because requests would be queued
   */
  readonly nats: () => LiveNatsConnection;
  /** Resolves when NATS has been reached for the first time. */
  readonly opened: Promise<void>;
  /** Rejects when it won't recover by itself; the message is one sentence for users. */
  readonly failed: Promise<never>;
};

export type LiveNatsConnection = {
  readonly connection: NatsConnection;
  /** Aborts when the connection breaks: answers to requests that were sent on it may never come. */
  readonly broken: AbortSignal;
};

/** Connects in the background, and retries until NATS is reached. */
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
  #log: ConnectedLogs | undefined;
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

  readonly logs = (): ConnectedLogs["logs"] => {
    if (this.#log === undefined) throw away();
    return this.#log.logs;
  };

  readonly workspaces = (): ConnectedLogs["workspaces"] => {
    if (this.#log === undefined) throw away();
    return this.#log.workspaces;
  };

  readonly nats = (): LiveNatsConnection => {
    if (this.#log === undefined || this.#broken.signal.aborted) throw away();
    return { connection: this.#log.nats, broken: this.#broken.signal };
  };

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort();
    await this.#running;
    await this.#log?.[Symbol.asyncDispose]();
  }

  async #run(): Promise<void> {
    const log = await connectLogs({
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
    this.#log = log;
    this.#broken = new AbortController();
    void this.#watchConnection(log.nats);
    this.#opened.resolve();
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
  if (isRefusedUser(error)) {
    return new Error(`the nats-server at ${natsHosts(url)} refuses nats.user and nats.password: correct them`, {
      cause: error,
    });
  }
  return error instanceof Error ? error : new Error(String(error));
}
