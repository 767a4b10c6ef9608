import type { NatsConnection } from "nats";
import type { Logger } from "../service/logger.ts";
import { connectNats, type NatsSettings, natsHosts, natsServers } from "../service/nats.ts";
import { backoff, delay } from "../sync/delay.ts";
import { DialTimeout } from "../sync/dial-timeout.ts";
import { ServerWatch } from "./cluster/server-watch.ts";
import { watchErasedSessions } from "./erasures/erased-sessions.ts";
import { type Log, LogUnusableError, openLog } from "./jetstream.ts";
import { streamName } from "./subjects.ts";
import { WorkspaceLogs } from "./workspace-logs.ts";

/** Disposing closes the connection too. */
export type ConnectedLog = Log & {
  readonly nats: NatsConnection;
  /** Those of all workspaces; they are closed with it. */
  readonly logs: WorkspaceLogs;
};

/** How the log is reached. */
export type LogConnectorOptions = {
  /** Name of the connection. */
  readonly service: string;
  readonly settings: NatsSettings;
  readonly logger: Logger;
  readonly historyReaders?: number;
  /** Whether to leave out sessions that are being erased, as everything that serves the log to others must. Default true. */
  readonly leaveOutErased?: boolean;
};

/** Builds what the caller needs on an open log. The result owns the log. */
export type PrepareLog<T> = (log: ConnectedLog) => Promise<T>;

/** `create`: whether a log that is missing is created; default true. */
type OpenOptions = { readonly signal?: AbortSignal; readonly create?: boolean };

/** Opens the log, each time on a connection of its own. Reports each warning about the server once. */
export class LogConnector {
  readonly #options: LogConnectorOptions;
  readonly #warned = new Set<string>();
  readonly #dial: DialTimeout;

  constructor(options: LogConnectorOptions) {
    this.#options = options;
    this.#dial = new DialTimeout(natsServers(options.settings.url).length);
  }

  /**
   * Tries once. Rejects when the server is away, the log is unusable, `prepare` rejects or the signal aborts, and then
   * nothing stays open.
   */
  async open<T>(prepare: PrepareLog<T>, { signal, create = true }: OpenOptions = {}): Promise<T> {
    const { service, settings, logger, historyReaders, leaveOutErased = true } = this.#options;
    await using stack = new AsyncDisposableStack();
    const nats = await connectNats(service, settings, logger, this.#dial);
    stack.defer(() => nats.close());
    using _interrupt = closeOnAbort(nats, signal);
    const erased = leaveOutErased
      ? stack.use(await watchErasedSessions(nats, (message, fields) => logger.warn({ ...fields }, message)))
      : undefined;
    let isOpen = false;
    const open = (stream: string) =>
      openLog(nats, {
        ...(erased && { erased }),
        create,
        streamName: stream,
        syncKnown: settings.syncAlways ?? false,
        ...(settings.replicas !== undefined && { replicas: settings.replicas }),
        ...(historyReaders !== undefined && { historyReaders }),
        warn: (message, fields) => {
          // Each attempt to open the log warns of the same.
          if (isOpen || !this.#warned.has(message)) logger.warn({ ...fields }, message);
          this.#warned.add(message);
        },
      });
    const log = stack.use(await open(streamName));
    const opened = new Map([[streamName, log]]);
    const openOnce = async (stream: string) => {
      const known = opened.get(stream);
      opened.delete(stream);
      return known ?? open(stream);
    };
    const logs = stack.use(new WorkspaceLogs({ nats, open: openOnce }));
    isOpen = true;
    stack.use(new ServerWatch(nats, { hasOthers: natsServers(settings.url).length > 1, logger }));
    const owned = new AsyncDisposableStack();
    const result = await prepare({ ...log, nats, logs, [Symbol.asyncDispose]: () => owned.disposeAsync() });
    owned.use(stack.move());
    return result;
  }
}

/** Makes requests on the connection reject at once, instead of at their timeouts. */
function closeOnAbort(nats: NatsConnection, signal: AbortSignal | undefined): Disposable {
  const close = () => void nats.close();
  signal?.addEventListener("abort", close);
  if (signal?.aborted) close();
  return { [Symbol.dispose]: () => signal?.removeEventListener("abort", close) };
}

/** How to connect to the log, with retries until the signal aborts. */
export type ConnectLogOptions<T> = LogConnectorOptions & {
  readonly signal: AbortSignal;
  /** Logged once, at the first failure; so is the end of it. */
  readonly awayMessage: string;
  /** The longest delay between two attempts. */
  readonly maxDelayMs?: number;
  /** Errors that do not go away by themselves. Default: LogUnusableError. */
  readonly isFinal?: (error: unknown) => boolean;
  /** Part of each attempt. */
  readonly prepare: PrepareLog<T>;
};

/**
 * Opens the log, and retries until it succeeds. Resolves with undefined when the signal aborts. Rejects with the first
 * final error.
 */
export async function connectLog<T>(options: ConnectLogOptions<T>): Promise<T | undefined> {
  const { settings, logger, signal, awayMessage, prepare, maxDelayMs = 500 } = options;
  const { isFinal = (error) => error instanceof LogUnusableError } = options;
  const connector = new LogConnector(options);
  const delays = backoff(100, maxDelayMs);
  for (let isFirst = true; !signal.aborted; isFirst = false) {
    try {
      const opened = await connector.open(prepare, { signal });
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
