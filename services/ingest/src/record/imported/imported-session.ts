import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import type { Imported, Item, Recorded } from "@tapedeck/proto/tapedeck/v1/recorder";
import { decodeEvent } from "@tapedeck/shared/events/codec";
import { ownChannel } from "@tapedeck/shared/events/kinds";
import { type SessionCheck, sessionCheck, sessionError } from "@tapedeck/shared/events/session-check";
import { largestGroup } from "@tapedeck/shared/log/grouping";
import { sourceParts } from "@tapedeck/shared/source";
import { yieldToEventLoop } from "@tapedeck/shared/sync/yield-to-event-loop";
import { timestampNow } from "@tapedeck/shared/time/timestamp";
import { ulid } from "ulid";
import { channelNames } from "../../normalize/normalizer.ts";
import { largestFrameBytes } from "../../normalize/original.ts";
import { isTextFrame, type Numbered } from "../frames/numbering.ts";
import { AckWatermark } from "../journal/ack-watermark.ts";
import { openSourceJournal, type SourceJournal } from "../journal/source-journal.ts";
import { importAddress, importBegan, importContinues, importedEnd, isImport } from "../own-facts/import-facts.ts";
import { upstreamLost } from "../own-facts/upstream-facts.ts";
import type { PushedSession, SessionRecorderOptions } from "../pushed-session.ts";
import { EventPieces } from "./event-pieces.ts";
import type { ImportMemory } from "./import-memory.ts";
import { movedTo } from "./imported-events.ts";
import { importedId } from "./imported-id.ts";
import { knownEvents, nothingKnown } from "./known-events.ts";
import { LogComparison } from "./log-comparison.ts";
import { refusedImport } from "./refused-import.ts";

export type ImportedSessionOptions = SessionRecorderOptions & {
  readonly imported: Imported;
  readonly memory?: ImportMemory;
  /** Called with each event before it is recorded. Throws if the session must not be recorded here. */
  readonly admit?: (event: Event) => void;
};

/** An event's content beside the frame and the headers. */
const besideFrameBytes = 590 * 1024;

/**
 * Opens the recorder of an import. What the log has of the session is read again beside what comes.
 * @throws TapedeckError invalid_argument if the session can't be imported here
 */
export async function openImport(options: ImportedSessionOptions): Promise<ImportedSession> {
  const { log, source, normalizer, hello, imported, listener = {}, textTtl, memory } = options;
  const { origin_session: origin = imported.session } = imported;
  const channels = channelNames(normalizer);
  const reason = sessionError(imported.session) ?? sessionError(origin);
  if (reason !== undefined) throw refusedImport(reason);
  const closing = new AbortController();
  const signal = AbortSignal.any([options.signal, closing.signal]);
  let importing: ImportedSession | undefined;
  await using stack = new AsyncDisposableStack();
  const journal = stack.use(
    await openSourceJournal({
      log,
      source,
      hello,
      signal,
      allSessions: true,
      memory: memory?.histories,
      life: textTtl === undefined ? undefined : { textTtl, channels },
      onAcknowledged(events) {
        listener.published?.(events);
        importing?.reportCommitted();
      },
      onPublishFailure: (published) => listener.onPublishFailure?.(published),
    }),
  );
  stack.defer(() => closing.abort());
  const session = await importedId({ reader: log.reader, origin, source, signal, memory: memory?.sessions });
  const local = journal.history.sessions.find(({ id }) => id === session);
  const known =
    local === undefined ? nothingKnown : knownEvents({ reader: log.reader, source, session: local, signal });
  const missing = Object.fromEntries(Object.entries(imported.missing).map(([channel, n]) => [channel, Number(n)]));
  const check = sessionCheck({ session: imported.session, source: imported.source, origin, channels, missing });
  const inLog = new LogComparison({ source, session, journal, known });
  importing = new ImportedSession(options, { journal, session, origin, inLog, check, owned: stack.move() });
  return importing;
}

type ImportParts = {
  readonly journal: SourceJournal;
  /** The id that the session has here. */
  readonly session: string;
  /** The id under which it was recorded first. */
  readonly origin: string;
  readonly inLog: LogComparison;
  readonly check: SessionCheck;
  readonly owned: AsyncDisposable;
};

/**
 * Records the events of a session that was recorded elsewhere. Events that the log already has must be the same; the rest
 * is added frame by frame. Repeating an import that was cut short continues it, and importing a later export of a session
 * that was still running adds the rest. The last item is `recorded_end`.
 */
export class ImportedSession implements PushedSession {
  readonly kind = "import";
  readonly waiting = false;
  readonly connected = false;
  readonly ended: Promise<Error>;
  /** The id that the session has here. */
  readonly session: string;

  readonly #options: ImportedSessionOptions;
  readonly #parts: ImportParts;
  readonly #journal: SourceJournal;
  readonly #watermark: AckWatermark;
  readonly #addedBefore: number;
  readonly #pieces = new EventPieces();
  readonly #yieldIfDue = yieldToEventLoop();
  #frame: Event[] = [];
  /** Items whose last event is in the frame. */
  #waitingItems: readonly bigint[] = [];
  #hasStarted = false;
  #isOver = false;

  constructor(options: ImportedSessionOptions, parts: ImportParts) {
    const { first_index } = options.hello;
    this.#options = options;
    this.#parts = parts;
    this.#journal = parts.journal;
    this.#watermark = new AckWatermark(first_index === 0n ? 0n : first_index - 1n);
    this.#addedBefore = parts.journal.writer.appended;
    this.session = parts.session;
    this.ended = parts.journal.writer.ended;
  }

  /** Events that this import has added to the log. */
  get added(): number {
    return this.#journal.writer.appended - this.#addedBefore;
  }

  committed(): bigint {
    return this.#watermark.upTo(this.#journal.writer.acknowledged);
  }

  reportCommitted(): void {
    this.#options.listener?.committed?.(this.committed());
  }

  async take(...items: readonly Item[]): Promise<void> {
    for (const item of items) {
      await this.#take(item);
      await this.#yieldIfDue();
    }
  }

  async #take({ index, what }: Item): Promise<void> {
    if (this.#isOver) throw refusedImport("nothing can come after the end");
    this.#watermark.began(index);
    if (what?.$case === "recorded") await this.#takeRecorded(what.value, index);
    else if (what?.$case === "recorded_end") await this.#end(what.value.events, index);
    else throw refusedImport("an import consists of events, and their end");
    this.reportCommitted();
    await this.#journal.writer.room();
  }

  async advance(): Promise<void> {}

  async drained(): Promise<void> {
    if (!this.#isOver) throw refusedImport("the import was interrupted: it has no end");
    await this.#journal.writer.reached(this.#journal.writer.appended);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#parts.owned[Symbol.asyncDispose]();
  }

  async #takeRecorded(recorded: Recorded, index: bigint): Promise<void> {
    const { session, origin, check } = this.#parts;
    const { labels } = this.#options.hello;
    const events = this.#pieces.join(recorded, check.events + 1);
    if (events === undefined) return;
    for (const bytes of events) {
      const event = decoded(bytes, check.events + 1);
      const reason = check.next(event);
      if (reason !== undefined) throw refusedImport(`event ${check.events + 1}: ${reason}`);
      this.#options.admit?.(event);
      await this.#takeEvent(movedTo({ session, origin, labels }, event));
    }
    if (this.#frame.length === 0) this.#watermark.finished(index, this.#journal.writer.appended);
    else this.#waitingItems = [...this.#waitingItems, index];
  }

  async #takeEvent(event: Event): Promise<void> {
    const { inLog, check } = this.#parts;
    if (await inLog.has(event, check.events)) return;
    if (this.#frame[0] !== undefined && !isOfFrame(event, this.#frame[0])) this.#flush(true);
    this.#frame.push(event);
    const bytes = this.#frame.reduce((sum, { original }) => sum + (original?.bytes.byteLength ?? 0), 0);
    if (this.#frame.length >= largestGroup.events || bytes >= largestGroup.bytes) this.#flush(false);
  }

  /** Publishes the collected frame. `isWhole`: the file has no more of it. */
  #flush(isWhole: boolean): void {
    const [first] = this.#frame;
    if (first === undefined) return;
    if (!this.#hasStarted) this.#begin();
    const { frameBytes = largestFrameBytes } = this.#options;
    const retention = isWhole && first.channel !== ownChannel && isTextFrame(this.#frame) ? "text" : "facts";
    const numbered = this.#frame.map((event) => this.#journal.numbers.imported(event, retention));
    for (const { written, event } of numbered) {
      if (written.event.byteLength <= frameBytes + besideFrameBytes) continue;
      throw refusedImport(`event ${event.id} has ${written.event.byteLength} bytes, which is more than this log takes`);
    }
    const added = this.#journal.publish(numbered);
    for (const index of this.#waitingItems) this.#watermark.finished(index, added);
    this.#waitingItems = [];
    this.#frame = [];
  }

  /** The session must become the newest of its source. */
  #begin(): void {
    const { source, hello, imported } = this.#options;
    const { history, numbers } = this.#journal;
    const later = history.sessions.find(({ id }) => id > this.session);
    if (later !== undefined) {
      throw refusedImport(
        `${source} has a later session, ${later.id}, and the sessions of a source must be in order: import this one as another project, such as --project ${sourceParts(source).project}-import`,
      );
    }
    const isKnown = history.sessions.some(({ id }) => id === this.session);
    this.#hasStarted = true;
    numbers.repeatBegan();
    const at = timestampNow();
    const connection = ulid();
    this.#journal.publish(this.#endOfConnectionBefore());
    const introduction = this.#journal.introduction(at);
    const began = this.#journal.own("", importBegan(connection, hello.tap, imported), at);
    this.#journal.publish([...introduction, began]);
    if (!isKnown) numbers.begin(this.session);
    else if (numbers.session !== this.session) numbers.continueSession(this.session, this.#parts.inLog.last);
    if (!this.#parts.inLog.wasEndedByImport) return;
    const continues = importContinues(connection, imported);
    this.#journal.publish([this.#journal.own(this.session, continues, history.lastAt ?? at)]);
  }

  /** A recorder was killed before it could record that its connection was lost. It may have started this very import. */
  #endOfConnectionBefore(): readonly Numbered[] {
    const { connection } = this.#journal.history;
    if (connection === undefined || connection.lost) return [];
    const { id, address } = connection;
    const lost = upstreamLost({ connection: id, address }, "a session is imported", true);
    return [this.#journal.own(isImport(connection) ? "" : connection.session, lost, timestampNow())];
  }

  async #end(events: bigint, index: bigint): Promise<void> {
    const { check, inLog } = this.#parts;
    const received = BigInt(check.events);
    const reason = this.#pieces.isIncomplete ? "the last event is not whole" : check.end();
    if (reason !== undefined) throw refusedImport(reason);
    if (events !== received) throw refusedImport(`expected ${events} events, but received ${received}`);
    this.#isOver = true;
    this.#flush(true);
    const further = await inLog.further();
    if (further !== "recorded") this.#endConnection({ isEnded: further === "imported" });
    this.#watermark.finished(index, this.#journal.writer.appended);
  }

  /**
   * Ends only a session that was imported. A session that was recorded here may continue. `isEnded`: an earlier import,
   * which may have been killed before it ended its connection too.
   */
  #endConnection({ isEnded }: { readonly isEnded: boolean }): void {
    const { imported } = this.#options;
    const { connection, lastAt = timestampNow() } = this.#journal.history;
    if (connection === undefined || connection.lost || connection.address !== importAddress(imported)) return;
    const { id, address } = connection;
    const ended =
      this.#parts.check.isOpen && !isEnded ? [this.#journal.own(this.session, importedEnd(imported), lastAt)] : [];
    const lost = upstreamLost({ connection: id, address }, "all of it is imported");
    this.#journal.publish([...ended, this.#journal.own("", lost, timestampNow())]);
  }
}

function decoded(bytes: Uint8Array, count: number): Event {
  try {
    return decodeEvent(bytes);
  } catch {
    throw refusedImport(`event ${count} can't be read`);
  }
}

function isOfFrame({ channel, frame_ordinal }: Event, first: Event): boolean {
  return channel !== ownChannel && channel === first.channel && frame_ordinal === first.frame_ordinal;
}
