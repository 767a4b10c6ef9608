import { JetStreamApiError, type JetStreamManager, jetstream, jetstreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "nats";
import { z } from "zod";
import { Semaphore } from "../../sync/semaphore.ts";
import { type CheckTimes, checkAgain } from "../check-again.ts";
import { bucketNames, ensureBucket } from "../key-value-bucket.ts";
import { wrongSequenceCodes } from "../writing/jetstream-writer.ts";

// Which query answers for which workspace: one key of a NATS KV bucket.
//
// 1. A workspace without an entry is the default query's. An entry changes by compare-and-set, so of two queries one wins.
// 2. A query is in the entry before it projects the first event of the workspace, and until it has deleted its last row: what
//    must have left all tables, such as an erased name, has left those of all queries in the entry.
// 3. A query writes its own name only when its tables have caught up with the log.

const bucket = "TAPEDECK_QUERIES";
const { stream, subject: subjectOf } = bucketNames(bucket);
/** Where the map is published. */
export const queryMapSubject = subjectOf("workspaces");

const timeoutMs = 2_000;
const never = new AbortController().signal;

/** The query without the setting `query.workspaces`, whose address the gateways have in `query.address`. */
export const defaultQuery = "";

const entrySchema = z.object({
  /** The query that answers: its address, or `defaultQuery`. */
  at: z.string(),
  /** Further queries whose tables have rows of it: one that takes it over, and one that has not deleted them yet. */
  also: z.array(z.string()).readonly(),
  /** The query that answers gives it up: another one may take it over. */
  offered: z.boolean(),
});

/** The queries of a workspace. */
export type WorkspaceQueries = Readonly<z.infer<typeof entrySchema>>;

/** By workspace. */
export type QueryMap = ReadonlyMap<string, WorkspaceQueries>;

const mapSchema = z.record(z.string(), entrySchema);
const ofDefault: WorkspaceQueries = { at: defaultQuery, also: [], offered: false };

/** The queries of a workspace; those of one without an entry are the default one alone. */
export function queriesOf(map: QueryMap, workspace: string): WorkspaceQueries {
  return map.get(workspace) ?? ofDefault;
}

/** All queries whose tables may have rows of a workspace, the one that answers first. */
export function tablesOf({ at, also }: WorkspaceQueries): readonly string[] {
  return [at, ...also.filter((query) => query !== at)];
}

/** The map as it is stored. The connection stays the caller's; everything rejects when NATS can't be asked. */
export class QueryMapStore {
  readonly #nats: NatsConnection;
  /** Those of one process would only compete. */
  readonly #changing = new Semaphore(1);
  #manager: Promise<JetStreamManager> | undefined;

  constructor(nats: NatsConnection) {
    this.#nats = nats;
  }

  /** From the leader. */
  async read(): Promise<QueryMap> {
    return (await this.#read()).map;
  }

  /** Changes the entry of a workspace, unless `change` returns the same one. It is called again when another query was first. */
  async change(workspace: string, change: (entry: WorkspaceQueries) => WorkspaceQueries): Promise<QueryMap> {
    const release = await this.#changing.acquire(never);
    try {
      for (;;) {
        const { map, revision } = await this.#read();
        const before = queriesOf(map, workspace);
        const after = change(before);
        if (after === before) return map;
        const changed = new Map(map).set(workspace, after);
        if (after.at === defaultQuery && after.also.length === 0) changed.delete(workspace);
        if (await this.#write(changed, revision)) return changed;
      }
    } finally {
      release?.();
    }
  }

  async #read(): Promise<{ readonly map: QueryMap; readonly revision: number }> {
    const message = await (await this.#jsm()).streams
      .getMessage(stream, { last_by_subj: queryMapSubject })
      .catch((cause: unknown) => {
        if (cause instanceof Error && cause.name === "StreamNotFoundError") return null;
        throw cause;
      });
    const isThere = message !== null && message.data.byteLength > 0;
    return {
      map: new Map(isThere ? Object.entries(mapSchema.parse(message.json())) : []),
      revision: message?.seq ?? 0,
    };
  }

  /** False: another one was first. */
  async #write(map: QueryMap, revision: number): Promise<boolean> {
    await ensureBucket(await this.#jsm(), bucket);
    const expect = { lastSubjectSequence: revision };
    try {
      const value = JSON.stringify(Object.fromEntries(map));
      await jetstream(this.#nats, { timeout: timeoutMs }).publish(queryMapSubject, value, { expect });
      return true;
    } catch (cause) {
      if (cause instanceof JetStreamApiError && wrongSequenceCodes.includes(cause.code)) return false;
      throw cause;
    }
  }

  #jsm(): Promise<JetStreamManager> {
    this.#manager ??= jetstreamManager(this.#nats, { timeout: timeoutMs, checkAPI: false });
    return this.#manager;
  }
}

/** A change is heard at once, or noticed within this time where the message was lost. */
export const queryMapMs = 5_000;
const defaultTimes: CheckTimes = { aloneMs: 300_000, inClusterMs: queryMapMs };

/** Calls `found` with the map at first, and whenever it may have changed, until it is disposed. */
export function watchQueryMap(
  nats: NatsConnection,
  found: (map: QueryMap) => void,
  times = defaultTimes,
): Disposable & {
  /** Rejects when the first reading fails. */
  readonly loaded: Promise<void>;
} {
  const store = new QueryMapStore(nats);
  let isOver = false;
  let last: Promise<unknown> = Promise.resolve();
  // One after the other, so that what is found last is the newest.
  const read = async () => {
    await last.catch(() => {});
    const map = await store.read();
    if (!isOver) found(map);
  };
  const again = () => {
    last = read();
    return last;
  };
  const checking = checkAgain(nats, again, times);
  const subscription = nats.subscribe(queryMapSubject, {
    // What is heard may have been refused by the stream, so it is read.
    callback: (error) => (error === null ? checking.now() : checking.isDeaf()),
  });
  const loaded = read();
  loaded.catch(() => {});
  last = loaded;
  return {
    loaded,
    [Symbol.dispose]: () => {
      isOver = true;
      checking[Symbol.dispose]();
      if (!nats.isClosed()) subscription.unsubscribe();
    },
  };
}
