import type { NatsConnection } from "nats";
import type { Logger } from "../service/logger.ts";
import { connectNats, type NatsSettings, natsHosts, natsServers } from "../service/nats.ts";
import { backoff, delay } from "../sync/delay.ts";
import { DialTimeout } from "../sync/dial-timeout.ts";
import { Semaphore } from "../sync/semaphore.ts";
import { ServerWatch } from "./cluster/server-watch.ts";
import { type ErasedSessions, watchErasedSessions } from "./erasures/erased-sessions.ts";
import { type Log, LogUnusableError, openLog, reachLogs } from "./jetstream.ts";
import type { Gathering } from "./live/tail.ts";
import { WorkspaceLogs } from "./workspace-logs.ts";
import { logSettingsOf } from "./workspaces/log-settings.ts";
import { type WatchedWorkspaces, watchWorkspaces } from "./workspaces/watch-workspaces.ts";

/** A connection to NATS, with the logs of all workspaces over it. Disposing closes all of them. */
export type ConnectedLogs = AsyncDisposable & {
  readonly nats: NatsConnection;
  readonly logs: WorkspaceLogs;
  readonly workspaces: WatchedWorkspaces;
};

export type { Gathering };

/** How the logs are reached. */
export type LogConnectorOptions = {
  /** Name of the connection. */
  readonly service: string;
  readonly settings: NatsSettings;
  readonly logger: Logger;
  /** How many pulls of history may run at once, of all logs together. Default 256. */
  readonly historyReaders?: number;
  /** Whether to leave out sessions that are being erased, as everything that serves the log to others must. Default true. */
  readonly leaveOutErased?: boolean;
  /** Whether a log that is missing is created when it is asked for. Default false. */
  readonly create?: boolean;
  /** For a reader that may wait for the messages of a workspace. Default: each message is followed at once. */
  readonly gathering?: (workspace: string) => Gathering;
};

/** Builds what the caller needs on a connection to the logs. The result owns the connection. */
export type PrepareLogs<T> = (connected: ConnectedLogs) => Promise<T>;

/** Connects to the logs, each time on a connection of its own. Reports each warning about the server once. */
export class LogConnector {
  readonly #options: LogConnectorOptions;
  readonly #warned = new Set<string>();
  readonly #dial: DialTimeout;

  constructor(options: LogConnectorOptions) {
    this.#options = options;
    this.#dial = new DialTimeout(natsServers(options.settings.url).length);
  }

  /**
   * Tries once. Rejects when the server is away or unusable, `prepare` rejects or the signal aborts, and then nothing
   * stays open.
   */
  async open<T>(prepare: PrepareLogs<T>, signal?: AbortSignal): Promise<T> {
    const { service, settings, logger, leaveOutErased = true } = this.#options;
    await using stack = new AsyncDisposableStack();
    const nats = await connectNats(service, settings, logger, this.#dial);
    stack.defer(() => nats.close());
    using _interrupt = closeOnAbort(nats, signal);
    const warn = (message: string, fields = {}) => logger.warn({ ...fields }, message);
    const erased = leaveOutErased ? stack.use(await watchErasedSessions(nats, warn)) : undefined;
    const workspaces = stack.use(await watchWorkspaces(nats, warn));
    await reachLogs(nats, { syncKnown: settings.syncAlways ?? false, warn: this.#warnOnce });
    const logs = stack.use(new WorkspaceLogs({ nats, open: this.#opener(nats, erased) }));
    stack.use(new ServerWatch(nats, { hasOthers: natsServers(settings.url).length > 1, logger }));
    const owned = new AsyncDisposableStack();
    const result = await prepare({ nats, logs, workspaces, [Symbol.asyncDispose]: () => owned.disposeAsync() });
    owned.use(stack.move());
    return result;
  }

  #opener(nats: NatsConnection, erased: ErasedSessions | undefined): (workspace: string) => Promise<Log> {
    const { settings, historyReaders = 256, create = false, gathering } = this.#options;
    const pulls = new Semaphore(historyReaders);
    return async (workspace) => {
      let isOpen = false;
      const { replicas, placement } = logSettingsOf(settings, workspace);
      const log = await openLog(nats, {
        workspace,
        ...(erased && { erased }),
        create,
        syncKnown: settings.syncAlways ?? false,
        replicas,
        placement,
        historyReaders: pulls,
        gathering: gathering?.(workspace),
        // Each opening warns of the same.
        warn: (message, fields = {}) =>
          isOpen ? this.#options.logger.warn({ ...fields }, message) : this.#warnOnce(message, fields),
      });
      isOpen = true;
      return log;
    };
  }

  readonly #warnOnce = (message: string, fields: Readonly<Record<string, unknown>> = {}): void => {
    if (!this.#warned.has(message)) this.#options.logger.warn({ ...fields }, message);
    this.#warned.add(message);
  };
}

/** Makes requests on the connection reject at once, instead of at their timeouts. */
function closeOnAbort(nats: NatsConnection, signal: AbortSignal | undefined): Disposable {
  const close = () => void nats.close();
  signal?.addEventListener("abort", close);
  if (signal?.aborted) close();
  return { [Symbol.dispose]: () => signal?.removeEventListener("abort", close) };
}

/** How to connect to the logs, with retries until the signal aborts. */
export type ConnectLogsOptions<T> = LogConnectorOptions & {
  readonly signal: AbortSignal;
  /** Logged once, at the first failure; so is the end of it. */
  readonly awayMessage: string;
  /** The longest delay between two attempts. */
  readonly maxDelayMs?: number;
  /** Errors that do not go away by themselves. Default: LogUnusableError. */
  readonly isFinal?: (error: unknown) => boolean;
  /** Part of each attempt. */
  readonly prepare: PrepareLogs<T>;
};

/**
 * Connects to the logs, and retries until it succeeds. Resolves with undefined when the signal aborts. Rejects with the first
 * final error.
 */
export async function connectLogs<T>(options: ConnectLogsOptions<T>): Promise<T | undefined> {
  const { settings, logger, signal, awayMessage, prepare, maxDelayMs = 500 } = options;
  const { isFinal = (error) => error instanceof LogUnusableError } = options;
  const connector = new LogConnector(options);
  const delays = backoff(100, maxDelayMs);
  for (let isFirst = true; !signal.aborted; isFirst = false) {
    try {
      const opened = await connector.open(prepare, signal);
      // A reader of the first message learns when it no longer holds.
      if (!isFirst) logger.warn({ url: natsHosts(settings.url) }, "the log is available");
      return opened;
    } catch (error) {
      if (isFinal(error)) throw error;
      if (isFirst && !signal.aborted) logger.warn({ url: natsHosts(settings.url), err: error }, awayMessage);
      await delay(delays.next(), signal);
    }
  }
  return undefined;
}
