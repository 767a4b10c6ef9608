import { jetstreamManager } from "@nats-io/jetstream";
import { type ConnectedLogs, connectLogs } from "@tapedeck/shared/log/connect-log";
import type { Log } from "@tapedeck/shared/log/jetstream";
import { knownEnds } from "@tapedeck/shared/log/known-ends";
import type { LogWriter } from "@tapedeck/shared/log/log";
import { requestTablesEnd } from "@tapedeck/shared/log/tables-end";
import type { Logger } from "@tapedeck/shared/service/logger";
import type { NatsSettings } from "@tapedeck/shared/service/nats";
import type { NatsConnection } from "nats";
import { largestFrameBytes } from "./normalize/original.ts";
import { ensureEnds, type LogEnds, openEnds } from "./record/journal/ends.ts";
import { type Leases, openLeases } from "./record/journal/lease.ts";
import { assertLogEnd, assertSameLog } from "./record/journal/log-end.ts";
import { recordingDelays } from "./record/journal/recording-delays.ts";
import type { Store, Stores } from "./record/recorder-options.ts";

/** Bound of the facts beside a frame, and of the headers. */
const besideFrameBytes = 600 * 1024;

/** How long to wait for a query that may be starting too. */
const tablesMs = 3_000;

export type OpenStore = Store & {
  readonly log: Omit<Log, keyof AsyncDisposable> & { readonly ends: LogEnds };
} & AsyncDisposable;

/** Connects to NATS and retries until it succeeds. Resolves with undefined when the signal aborts. */
export function openStores(
  settings: NatsSettings,
  ingest: string,
  logger: Logger,
  signal: AbortSignal,
): Promise<OpenStores | undefined> {
  return connectLogs({
    service: "ingest",
    settings,
    logger,
    signal,
    create: true,
    awayMessage: "the log is unavailable: items wait in the spills of their taps",
    leaveOutErased: false,
    prepare: async (connected) => {
      await ensureEnds(connected.nats, settings.replicas);
      return new OpenStores(connected, await openLeases(connected.nats, ingest), signal);
    },
  });
}

/** The stores of all workspaces. Each is opened when it is first asked for, and stays open. */
export class OpenStores implements Stores, AsyncDisposable {
  readonly nats: NatsConnection;
  readonly leases: Leases;
  readonly #connected: ConnectedLogs;
  readonly #signal: AbortSignal;
  readonly #opened = new Map<string, Promise<OpenStore>>();
  #onOpened: (store: OpenStore) => void = () => {};

  constructor(connected: ConnectedLogs, leases: Leases, signal: AbortSignal) {
    this.#connected = connected;
    this.#signal = signal;
    this.nats = connected.nats;
    this.leases = leases;
  }

  /** Calls `opened`, and no other listener, for each store that is opened from now on. */
  onOpened(opened: (store: OpenStore) => void): void {
    this.#onOpened = opened;
  }

  of(workspace: string): Promise<OpenStore> {
    const known = this.#opened.get(workspace);
    if (known !== undefined) return known;
    const opening = this.#open(workspace);
    this.#opened.set(workspace, opening);
    opening.then(this.#onOpened).catch(() => {
      if (this.#opened.get(workspace) === opening) this.#opened.delete(workspace);
    });
    return opening;
  }

  /** Those that are open, or that could not be opened. */
  async all(): Promise<readonly OpenStore[]> {
    const opened = await Promise.allSettled(this.#opened.values());
    return opened.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
  }

  names(): Promise<readonly string[]> {
    return this.#connected.logs.names();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all((await this.all()).map((store) => store[Symbol.asyncDispose]()));
    await this.leases[Symbol.asyncDispose]();
    await this.#connected[Symbol.asyncDispose]();
  }

  async #open(workspace: string): Promise<OpenStore> {
    const { nats, leases } = this;
    await using stack = new AsyncDisposableStack();
    const log = await this.#connected.logs.of(workspace);
    // A log that can't be used is opened anew by the next call.
    stack.defer(() => this.#connected.logs.forget(workspace, log));
    const ends = stack.use(await openEnds(nats, { workspace, epoch: log.epoch }));
    assertSameLog(log, await knownEnds(await jetstreamManager(nats, { timeout: 2_000, checkAPI: false }), workspace));
    // Query has committed what was in the log. The ends that are kept beside the log may be a second older.
    const hasQuery = (await ends.tables())?.epoch === log.epoch;
    const tables = hasQuery ? await requestTablesEnd(nats, workspace, tablesMs, this.#signal) : undefined;
    if (tables !== undefined) ends.tablesReported(tables);
    const assertWhole = () => assertLogEnd(log, ends);
    await assertWhole();
    const identityKey = await ends.identityKey();
    const maxPayload = nats.info?.max_payload ?? Number.POSITIVE_INFINITY;
    const frameBytes = Math.max(64 * 1024, Math.min(largestFrameBytes, maxPayload - besideFrameBytes));
    const owned = stack.move();
    const { reader, stored, epoch } = log;
    return {
      nats,
      workspace,
      log: { reader, writer: timed(log.writer), stored, epoch, ends },
      assertWhole,
      leases,
      frameBytes,
      identityKey,
      [Symbol.asyncDispose]: () => owned.disposeAsync(),
    };
  }
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
