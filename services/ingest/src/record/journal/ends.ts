import { randomBytes } from "node:crypto";
import {
  JetStreamApiError,
  type JetStreamManager,
  jetstream,
  jetstreamManager,
  type StreamExpectations,
} from "@nats-io/jetstream";
import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { infoOfLeader } from "@tapedeck/shared/log/cluster/leader-info";
import { raiseReplicas } from "@tapedeck/shared/log/cluster/replicas";
import { encodeHoles, type KnownHole } from "@tapedeck/shared/log/holes/known-holes";
import type { Cursor } from "@tapedeck/shared/log/log";
import type { Sequence } from "@tapedeck/shared/log/offset";
import {
  type EndSubjects,
  endSubject,
  endSubjects,
  endsStream,
  everyEndSubject,
  sourceOfEndSubject,
} from "@tapedeck/shared/log/subjects";
import { type TablesEnd, tablesEndSchema } from "@tapedeck/shared/log/tables-end";
import { wrongSequenceCodes } from "@tapedeck/shared/log/writing/jetstream-writer";
import { ownValue } from "@tapedeck/shared/own-value";
import type { SourceName } from "@tapedeck/shared/source";
import { delay } from "@tapedeck/shared/sync/delay";
import { Semaphore } from "@tapedeck/shared/sync/semaphore";
import type { NatsConnection } from "nats";
import { z } from "zod";

/** How far a source has come: its last message that is known to have been in the log. */
export type SourceEnd = { readonly epoch: string; readonly seq: Sequence; readonly cursor: Cursor };

/**
 * How far a workspace's log and each of its sources have come, kept outside the log: when its files are damaged, it cannot detect that
 * something stood behind its end. In a stream of its own on the same NATS, one small message a source. Each is written at
 * most once a second, and less often where the writes of all sources take longer: one round of them is a second and the
 * time that they take. What was acknowledged since a source's last write is missing there after a crash.
 */
export type LogEnds = AsyncDisposable & {
  /** It is in the log. Written soon, and at the end. */
  reached(source: SourceName, seq: Sequence, cursor: Cursor): void;
  /** Decides by what is stored and by what this process has seen. Rejects when NATS can't be asked. */
  endOf(source: SourceName): Promise<SourceEnd | undefined>;
  /** Every source's. Rejects when NATS can't be asked. */
  all(): Promise<ReadonlyMap<SourceName, SourceEnd>>;
  /**
   * Keeps a place for a new source among those of its workspace, for a day or until something of it is in the log. All
   * ingests count together. Resolves with the number of other sources; from `max` on nothing was kept. Rejects as `all`.
   * @throws TapedeckError limit_exceeded when so many wait for their first event that their message would be too large
   */
  reserve(source: SourceName, max: number): Promise<number>;
  /** The last sequence that is known to have been given in this epoch, query's tables included; 0 for none. Rejects as `all`. */
  lastSeq(): Promise<Sequence>;
  /** The stored report of a query; undefined: there is none. Rejects as `all`. */
  tables(): Promise<TablesEnd | undefined>;
  /** Query has reported it just now. */
  tablesReported(end: TablesEnd): void;
  /**
   * The first sequence that the log has on purpose: `otherwise`, from now on, if none is stored. Rejects when NATS
   * can't be reached.
   */
  firstSeq(otherwise: Sequence): Promise<Sequence>;
  /** The key of frames' identities (see event.proto), made once. Rejects when NATS can't be reached. */
  identityKey(): Promise<Uint8Array>;
  /** These sources are no longer in this log. Rejects as `all`. */
  forget(isRemoved: (source: SourceName) => boolean): Promise<void>;
  /** Everything before it may be missing from now on. */
  dropBefore(seq: Sequence): Promise<void>;
  /** The log is removed: nothing of it is written any more. */
  removed(): void;
  /** Readers are to know of these holes, and of no others. Rejects when NATS can't be reached. */
  keepHoles(holes: readonly KnownHole[]): Promise<void>;
};

export type LogEndsOptions = {
  readonly workspace: string;
  readonly epoch: string;
  /** Logs of the same name that were removed: an end that is still there of one is none. */
  readonly removedEpochs?: readonly string[];
  readonly everyMs?: number;
};

const numbers = z.record(z.string(), z.number());
const endSchema = z.object({
  epoch: z.string(),
  seq: z.number(),
  cursor: z.looseObject({ session: z.string(), ordinals: numbers, frames: numbers }),
});
const firstSchema = z.object({ epoch: z.string(), seq: z.number() });
const reservationsSchema = z.record(z.string(), z.number());
const reservedMs = 24 * 3_600_000;
/** NATS' own default is a `max_payload` of 1 MiB. There is room for 10,000 sources with names of usual length. */
const maxReservedBytes = 1_000_000;
const identityKeyBytes = 32;
/** The server syncs each to the disk: those of hundreds of sources at once would hold up the log's messages. */
const maxAtOnce = 4;
/** This process writes no messages any more when it closes them. */
const maxAtClose = 100;

/** The connection stays the caller's. The stream is there; see ensureEnds. */
export async function openEnds(nc: NatsConnection, options: LogEndsOptions): Promise<LogEnds> {
  return new Ends(nc, await jetstreamManager(nc, { timeout: 2_000, checkAPI: false }), options);
}

class Ends implements LogEnds {
  readonly #nc: NatsConnection;
  readonly #jsm: JetStreamManager;
  readonly #workspace: string;
  readonly #subjects: EndSubjects;
  readonly #epoch: string;
  readonly #removedEpochs: readonly string[];
  readonly #everyMs: number;
  /** Those that are not stored yet: what is stored may be forgotten by another process. */
  readonly #known = new Map<SourceName, SourceEnd>();
  readonly #closing = new AbortController();
  readonly #reserving = new Semaphore(1);
  readonly #unwritten = new Set<SourceName>();
  #isRemoved = false;
  #writing: Promise<void> | undefined;
  /** Undefined until what is kept was read. */
  #lastAssigned: number | undefined;
  #reportedTables: TablesEnd | undefined;

  constructor(nc: NatsConnection, jsm: JetStreamManager, options: LogEndsOptions) {
    const { workspace, epoch, removedEpochs = [], everyMs = 1_000 } = options;
    this.#nc = nc;
    this.#jsm = jsm;
    this.#workspace = workspace;
    this.#subjects = endSubjects(workspace);
    this.#epoch = epoch;
    this.#removedEpochs = removedEpochs;
    this.#everyMs = everyMs;
  }

  reached(source: SourceName, seq: Sequence, cursor: Cursor): void {
    this.#known.set(source, { epoch: this.#epoch, seq, cursor });
    if (this.#lastAssigned !== undefined) this.#lastAssigned = Math.max(this.#lastAssigned, seq);
    if (this.#isRemoved) return;
    this.#unwritten.add(source);
    this.#writing ??= this.#write();
  }

  async endOf(source: SourceName): Promise<SourceEnd | undefined> {
    // From the leader.
    const message = await this.#jsm.streams.getMessage(endsStream, { last_by_subj: endSubject(source) });
    const stored = message === null ? undefined : endIn(message.data, this.#removedEpochs);
    return further(stored, this.#known.get(source));
  }

  async all(): Promise<ReadonlyMap<SourceName, SourceEnd>> {
    const ends = new Map<SourceName, SourceEnd>(this.#known);
    for (let seq = 1; ; ) {
      const query = { seq, next_by_subj: this.#subjects.sources };
      const message = await this.#jsm.streams.getMessage(endsStream, query);
      if (message === null) return ends;
      seq = message.seq + 1;
      const source = sourceOfEndSubject(message.subject);
      const last = further(endIn(message.data, this.#removedEpochs), ends.get(source));
      if (last !== undefined) ends.set(source, last);
    }
  }

  async reserve(source: SourceName, max: number): Promise<number> {
    // Each of several at once would begin again whenever another one has succeeded.
    const release = await this.#reserving.acquire(this.#closing.signal);
    try {
      return await this.#reserve(source, max);
    } finally {
      release?.();
    }
  }

  async #reserve(source: SourceName, max: number): Promise<number> {
    const workspace = this.#workspace;
    const subject = this.#subjects.reserved;
    const own = endSubject(source);
    for (;;) {
      // Before the ends are read: a reservation is dropped only when the source has an end.
      const message = await this.#jsm.streams.getMessage(endsStream, { last_by_subj: subject });
      const filter = { subjects_filter: this.#subjects.sources };
      const { state } = await infoOfLeader(this.#jsm, endsStream, filter);
      const stored = new Set(Object.keys(state.subjects ?? {}));
      const reserved = Object.entries((message && parsed(message.data, reservationsSchema)) ?? {}).filter(
        ([one, at]) => !stored.has(one) && one !== own && Date.now() - at < reservedMs,
      );
      // Those that were reached just now may not be stored yet.
      const here = [...this.#known.keys()].map(endSubject);
      const others = new Set([...stored, ...here, ...reserved.map(([one]) => one)]);
      others.delete(own);
      if (others.size >= max) return others.size;
      const content = JSON.stringify(Object.fromEntries([...reserved, [own, Date.now()]]));
      if (content.length > maxReservedBytes) throw tooManyReserved(workspace, reserved.length);
      // Where several processes do this at once, the first succeeds, and the others read what it wrote.
      const isStored = await this.#publishIfLast(subject, content, message?.seq ?? 0);
      if (isStored) return others.size;
    }
  }

  /** False: another process published there first. */
  async #publishIfLast(subject: string, data: string | Uint8Array, lastSubjectSequence: number): Promise<boolean> {
    try {
      await jetstream(this.#nc).publish(subject, data, { expect: { lastSubjectSequence } });
      return true;
    } catch (cause) {
      if (cause instanceof JetStreamApiError && wrongSequenceCodes.includes(cause.code)) return false;
      throw cause;
    }
  }

  async lastSeq(): Promise<Sequence> {
    if (this.#lastAssigned === undefined) {
      const ends = [...(await this.all()).values()];
      this.#lastAssigned = Math.max(0, ...ends.flatMap(({ epoch, seq }) => (epoch === this.#epoch ? [seq] : [])));
    }
    return Math.max(this.#lastAssigned, this.#seqOf(this.#reportedTables), this.#seqOf(await this.tables()));
  }

  async tables(): Promise<TablesEnd | undefined> {
    const message = await this.#jsm.streams.getMessage(endsStream, { last_by_subj: this.#subjects.tables });
    return message === null ? undefined : parsed(message.data, tablesEndSchema);
  }

  tablesReported(end: TablesEnd): void {
    this.#reportedTables = end;
  }

  #seqOf(end: TablesEnd | undefined): number {
    return end?.epoch === this.#epoch ? end.seq : 0;
  }

  async firstSeq(otherwise: Sequence): Promise<Sequence> {
    const message = await this.#jsm.streams.getMessage(endsStream, { last_by_subj: this.#subjects.first });
    const reported = message === null ? undefined : parsed(message.data, firstSchema);
    if (reported !== undefined) return reported.seq;
    // A process that stores one at this very moment takes precedence.
    await this.#publishFirst(otherwise, { lastSubjectSequence: message?.seq ?? 0 });
    return otherwise;
  }

  async dropBefore(seq: Sequence): Promise<void> {
    await this.#publishFirst(seq, {});
  }

  async keepHoles(holes: readonly KnownHole[]): Promise<void> {
    await jetstream(this.#nc).publish(this.#subjects.holes, encodeHoles(this.#epoch, holes));
  }

  async identityKey(): Promise<Uint8Array> {
    for (;;) {
      const message = await this.#jsm.streams.getMessage(endsStream, { last_by_subj: this.#subjects.key });
      if (message !== null && message.data.byteLength === identityKeyBytes) return message.data;
      // The first key counts where several ingests start at once.
      await this.#publishIfLast(this.#subjects.key, randomBytes(identityKeyBytes), message?.seq ?? 0);
    }
  }

  async forget(isRemoved: (source: SourceName) => boolean): Promise<void> {
    const removed = [...(await this.all()).keys()].filter(isRemoved);
    for (const source of removed) {
      this.#known.delete(source);
      this.#unwritten.delete(source);
      // Nothing that can be read is no end. Without it the stream would keep the name.
      const { seq } = await jetstream(this.#nc, { timeout: 2_000 }).publish(endSubject(source), "");
      await this.#jsm.streams.deleteMessage(endsStream, seq, true);
    }
  }

  removed(): void {
    this.#isRemoved = true;
    this.#known.clear();
    this.#unwritten.clear();
  }

  async #publishFirst(seq: Sequence, expect: Partial<StreamExpectations>): Promise<void> {
    await jetstream(this.#nc).publish(this.#subjects.first, JSON.stringify({ epoch: this.#epoch, seq }), { expect });
  }

  /** Spreads the writes of all sources over the time between two writes of one. */
  async #write(): Promise<void> {
    while (this.#unwritten.size > 0 && !this.#closing.signal.aborted) {
      const share = Math.min(1, maxAtOnce / this.#unwritten.size);
      await this.#writeSome(maxAtOnce);
      await delay(this.#everyMs * share, this.#closing.signal);
    }
    this.#writing = undefined;
  }

  /** Writes those that have waited longest. What can't be written waits again, behind the others; false: that is all of it. */
  async #writeSome(max: number): Promise<boolean> {
    const some = [...this.#unwritten].slice(0, max);
    for (const source of some) this.#unwritten.delete(source);
    const js = jetstream(this.#nc, { timeout: 2_000 });
    const put = async (source: SourceName) => {
      const end = this.#known.get(source);
      await js.publish(endSubject(source), JSON.stringify(end));
      if (this.#known.get(source) === end) this.#known.delete(source);
    };
    const results = await Promise.allSettled(some.map(put));
    const failed = some.filter((_source, index) => results[index]?.status === "rejected");
    for (const source of failed) this.#unwritten.add(source);
    return failed.length < some.length;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort();
    await this.#writing;
    while (this.#unwritten.size > 0 && !this.#nc.isClosed()) if (!(await this.#writeSome(maxAtClose))) return;
  }
}

/** Undefined for that of a log that was removed. */
function endIn(data: Uint8Array, removedEpochs: readonly string[]): SourceEnd | undefined {
  const end = parsed(data, endSchema) as SourceEnd | undefined;
  return end !== undefined && removedEpochs.includes(end.epoch) ? undefined : end;
}

function tooManyReserved(workspace: string, count: number): TapedeckError {
  const todo = "record something under these names, or try again a day after they were first used";
  const text = `${count} new sources of the workspace "${workspace}" wait for their first event, and no more can: ${todo}`;
  return new TapedeckError("limit_exceeded", text);
}

/** Whether a cursor is of a later message of the same source. Positions cannot show it: a log may have lost its end. */
export function isAhead(one: Cursor, other: Cursor): boolean {
  const own = (cursor: Cursor) => cursor.ordinals.tapedeck ?? 0;
  if (own(one) !== own(other)) return own(one) > own(other);
  if (one.session !== other.session) return false;
  return Object.entries(one.ordinals).some(([channel, ordinal]) => ordinal > (ownValue(other.ordinals, channel) ?? 0));
}

function further(one: SourceEnd | undefined, other: SourceEnd | undefined): SourceEnd | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return isAhead(other.cursor, one.cursor) ? other : one;
}

function parsed<T>(data: Uint8Array, schema: z.ZodType<T>): T | undefined {
  try {
    return schema.parse(JSON.parse(new TextDecoder().decode(data)));
  } catch {
    return undefined; // its file may be damaged as well
  }
}

/** Makes the stream of the ends, with so many replicas. The connection stays the caller's. Rejects when it can't be had. */
export async function ensureEnds(nc: NatsConnection, replicas = 1): Promise<void> {
  const jsm = await jetstreamManager(nc, { timeout: 2_000, checkAPI: false });
  try {
    await jsm.streams.add({
      name: endsStream,
      subjects: [everyEndSubject],
      max_msgs_per_subject: 1,
      storage: "file",
      allow_direct: true,
      num_replicas: replicas,
    });
  } catch (cause) {
    // It is there, maybe with settings of its operator's own.
    if (!(cause instanceof JetStreamApiError && cause.code === streamExists)) throw cause;
    await raiseReplicas(jsm, await jsm.streams.info(endsStream), replicas);
  }
}

const streamExists = 10058;
