import { jetstreamManager } from "@nats-io/jetstream";
import { type ConnectedLogs, connectLogs } from "@tapedeck/shared/log/connect-log";
import type { Log } from "@tapedeck/shared/log/jetstream";
import { knownEnds } from "@tapedeck/shared/log/known-ends";
import type { LogWriter } from "@tapedeck/shared/log/log";
import { QueryMapStore, queriesOf } from "@tapedeck/shared/log/queries/query-map";
import { streamOf } from "@tapedeck/shared/log/subjects";
import { requestTablesEnd } from "@tapedeck/shared/log/tables-end";
import { logSettingsOf } from "@tapedeck/shared/log/workspaces/log-settings";
import type { WatchedWorkspaces } from "@tapedeck/shared/log/workspaces/watch-workspaces";
import { isRemoving, type Removal, WorkspaceStore } from "@tapedeck/shared/log/workspaces/workspace-store";
import type { Logger } from "@tapedeck/shared/service/logger";
import type { NatsSettings } from "@tapedeck/shared/service/nats";
import type { NatsConnection } from "nats";
import { largestFrameBytes } from "./normalize/original.ts";
import { ensureEnds, type LogEnds, openEnds } from "./record/journal/ends.ts";
import { type Leases, openLeases } from "./record/journal/lease.ts";
import { assertLogEnd, assertSameLog } from "./record/journal/log-end.ts";
import { recordingDelays } from "./record/journal/recording-delays.ts";
import { LogQuota } from "./record/log-quota.ts";
import { notReady } from "./record/push-errors.ts";
import type { Store, Stores } from "./record/recorder-options.ts";
import { logOf } from "./record/removal/begin-removal.ts";

/** Bound of the facts beside a frame, and of the headers. */
const besideFrameBytes = 600 * 1024;

/** How long to wait for a query that may be starting too. */
const tablesMs = 3_000;

export type OpenStore = Store & {
  readonly log: Omit<Log, keyof AsyncDisposable> & { readonly ends: LogEnds };
  /** Why its log takes nothing for its settings, a sentence for people. */
  readonly whyFull: () => string | undefined;
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
      await new WorkspaceStore(connected.nats).ensure();
      const leases = await openLeases(connected.nats, ingest, {}, (message, fields) => logger.warn(fields, message));
      return new OpenStores(connected, leases, settings, signal);
    },
  });
}

/** Learns of stores. */
export type StoreListener = {
  readonly opened: (store: OpenStore) => void;
  /** The workspace is being removed. Nothing of it is written any more when it resolves. */
  readonly removed: (workspace: string) => Promise<void>;
};

/** The stores of all workspaces. Each is opened when it is first asked for, and stays open until its workspace is removed. */
export class OpenStores implements Stores, AsyncDisposable {
  readonly nats: NatsConnection;
  readonly leases: Leases;
  readonly workspaces: WatchedWorkspaces;
  readonly #connected: ConnectedLogs;
  readonly #settings: NatsSettings;
  readonly #signal: AbortSignal;
  readonly #known: WorkspaceStore;
  readonly #opened = new Map<string, Promise<OpenStore>>();
  readonly #closing = new Map<string, Promise<void>>();
  #listener: StoreListener = { opened: () => {}, removed: async () => {} };

  constructor(connected: ConnectedLogs, leases: Leases, settings: NatsSettings, signal: AbortSignal) {
    this.#connected = connected;
    this.#settings = settings;
    this.#signal = signal;
    this.#known = new WorkspaceStore(connected.nats);
    this.nats = connected.nats;
    this.leases = leases;
    this.workspaces = connected.workspaces;
    // Until the connection is closed.
    this.workspaces.onRemoval((removal) => {
      if (removal.state === "removing") this.close(removal).catch(() => {});
    });
  }

  /** Calls this, and no other listener, from now on. */
  listen(listener: StoreListener): void {
    this.#listener = listener;
  }

  /** Writes nothing any more of a workspace whose log is being removed. The next `of` opens another log. */
  close(removal: Removal): Promise<void> {
    const { workspace } = removal;
    const known = this.#closing.get(workspace);
    if (known !== undefined) return known;
    const closing = this.#close(removal).finally(() => this.#closing.delete(workspace));
    this.#closing.set(workspace, closing);
    return closing;
  }

  async #close({ workspace, epochs }: Removal): Promise<void> {
    const opening = this.#opened.get(workspace);
    const store = await opening?.catch(() => undefined);
    if (store === undefined || !epochs.includes(store.log.epoch)) return;
    if (this.#opened.get(workspace) === opening) this.#opened.delete(workspace);
    store.log.ends.removed();
    await this.#listener.removed(workspace);
    await store[Symbol.asyncDispose]();
  }

  of(workspace: string): Promise<OpenStore> {
    const known = this.#opened.get(workspace);
    if (known !== undefined) return known;
    const opening = this.#open(workspace);
    this.#opened.set(workspace, opening);
    opening
      .then((store) => this.#listener.opened(store))
      .catch(() => {
        if (this.#opened.get(workspace) === opening) this.#opened.delete(workspace);
      });
    return opening;
  }

  /** Undefined where the workspace has no log: none is made. Rejects as `of`, also while the workspace is being removed. */
  async existing(workspace: string): Promise<OpenStore | undefined> {
    const jsm = await jetstreamManager(this.nats, { timeout: 2_000, checkAPI: false });
    return (await logOf(jsm, workspace)) === undefined ? undefined : this.of(workspace);
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
    const removal = await this.#known.removalOf(workspace);
    if (removal?.state === "removing") throw beingRemoved(workspace);
    await using stack = new AsyncDisposableStack();
    const log = await this.#connected.logs.of(workspace);
    const { reader, stored, epoch } = log;
    // A log that can't be used is opened anew by the next call.
    stack.defer(() => this.#connected.logs.forget(workspace, log));
    const ends = stack.use(await openEnds(nats, { workspace, epoch, removedEpochs: removal?.epochs ?? [] }));
    assertSameLog(log, await knownEnds(await jetstreamManager(nats, { timeout: 2_000, checkAPI: false }), workspace));
    // Query has committed what was in the log. The ends that are kept beside the log may be a second older.
    const hasQuery = (await ends.tables())?.epoch === epoch;
    const tables = hasQuery ? await this.#tablesEnd(workspace) : undefined;
    if (tables !== undefined) ends.tablesReported(tables);
    await assertLogEnd(log, ends);
    const assertWhole = async () => {
      await this.#assertStays(workspace, epoch);
      await assertLogEnd(log, ends);
    };
    const identityKey = await ends.identityKey();
    const { maxBytes } = logSettingsOf(this.#settings, workspace);
    const quota =
      maxBytes === undefined ? undefined : new LogQuota({ workspace, maxBytes, bytes: () => bytesOf(nats, workspace) });
    const maxPayload = nats.info?.max_payload ?? Number.POSITIVE_INFINITY;
    const frameBytes = Math.max(64 * 1024, Math.min(largestFrameBytes, maxPayload - besideFrameBytes));
    const owned = stack.move();
    return {
      nats,
      workspace,
      log: { reader, writer: timed(quota?.limited(log.writer) ?? log.writer), stored, epoch, ends },
      assertWhole,
      leases,
      frameBytes,
      identityKey,
      whyFull: () => quota?.whyFull(),
      [Symbol.asyncDispose]: () => owned.disposeAsync(),
    };
  }

  /**
   * A recorder looks for a removal after it has its lease, and a removal looks for leases after it is written down: one of both
   * finds the other.
   */
  async #assertStays(workspace: string, epoch: string): Promise<void> {
    const removal = await this.#known.removalOf(workspace);
    if (!isRemoving(removal) && removal?.epochs.includes(epoch) !== true) return;
    if (removal !== undefined && removal.state !== "requested") void this.close(removal);
    throw beingRemoved(workspace);
  }

  async #tablesEnd(workspace: string) {
    const { at } = queriesOf(await new QueryMapStore(this.nats).read(), workspace);
    return requestTablesEnd(this.nats, workspace, tablesMs, { query: at, signal: this.#signal });
  }
}

async function bytesOf(nats: NatsConnection, workspace: string): Promise<number> {
  const jsm = await jetstreamManager(nats, { timeout: 2_000, checkAPI: false });
  return (await jsm.streams.info(streamOf(workspace))).state.bytes;
}

function beingRemoved(workspace: string): Error {
  return notReady(`the workspace "${workspace}" is being removed`);
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
