import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import type { Imported, Item, Recorded } from "@tapedeck/proto/tapedeck/v1/recorder";
import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { decodeEvent } from "@tapedeck/shared/events/codec";
import { sourceParts } from "@tapedeck/shared/source";
import { momentNow } from "@tapedeck/shared/time/moment";
import { ulid } from "ulid";
import { sessionCheck, sessionProblem } from "../../import/session-check.ts";
import { channelNames } from "../../normalize/normalizer.ts";
import { isText, type Numbered, ownChannel } from "../frames/numbering.ts";
import { largestFrameBytes } from "../frames/original.ts";
import { commits } from "../journal/ack-watermark.ts";
import { openBook } from "../journal/source-journal.ts";
import { largestBatch } from "../journal/writer.ts";
import { importAddress, importBegan, importContinues, importedEnd, isImport } from "../own-facts/import-facts.ts";
import { upstreamLost } from "../own-facts/upstream-facts.ts";
import type { Recording, RecordingOptions } from "../session/session-recorder.ts";
import type { ImportMemory } from "./import-memory.ts";
import { isOfImport, movedTo } from "./imported-events.ts";
import { importedId } from "./imported-id.ts";
import { isSameEvent, knownEvents, nothingKnown } from "./known-events.ts";

/** Takes the items of one import, the last of which is `recorded_end`. */
export type ImportedSession = AsyncDisposable &
  Pick<Recording, "take" | "advance" | "waiting" | "committed" | "onCommitted" | "drained" | "connected" | "ended"> & {
    /** Messages that this import has added to the log. */
    readonly added: number;
    /** The id that the session has here. */
    readonly session: string;
  };

export type ImportOptions = RecordingOptions & {
  readonly imported: Imported;
  readonly memory?: ImportMemory;
};

/** Of what is in an event beside the frame, and not in the headers. */
const besideFrameBytes = 590 * 1024;
const mostEventBytes = 8 * 1024 * 1024;

/**
 * Records the events of a session that was recorded elsewhere. What the log has of it is read again beside what comes, and
 * what comes has to be the same; the rest is added, frame by frame. So an import that was cut short is gone on with by
 * beginning it again, and a session that went on when it was exported by importing a later export of it.
 * @throws TapedeckError invalid_argument when the session can't come here
 */
export async function openImport(options: ImportOptions): Promise<ImportedSession> {
  const {
    log,
    source,
    reading,
    hello,
    imported,
    watch = {},
    textTtl,
    frameBytes = largestFrameBytes,
    memory,
  } = options;
  const { origin_session: origin = imported.session } = imported;
  const channels = channelNames(reading);
  const problem = sessionProblem(imported.session) ?? sessionProblem(origin);
  if (problem !== undefined) throw refused(problem);
  const closing = new AbortController();
  const signal = AbortSignal.any([options.signal, closing.signal]);
  await using stack = new AsyncDisposableStack();
  const book = stack.use(
    await openBook({
      ...{ log, source, hello, signal, allSessions: true, together: true, memory: memory?.histories },
      life: textTtl === undefined ? undefined : { textTtl, channels },
      onAcknowledged(messages) {
        watch.published?.(messages);
        importing.onCommitted();
      },
      onTrouble: (published) => watch.trouble?.(published),
    }),
  );
  const { history, numbers, writer } = book;
  const session = await importedId({ reader: log.reader, origin, source, signal, memory: memory?.sessions });
  const mine = history.sessions.find(({ id }) => id === session);
  const known = mine === undefined ? nothingKnown : knownEvents({ reader: log.reader, source, session: mine, signal });
  const missing = Object.entries(imported.missing).map(([channel, count]) => [channel, Number(count)] as const);
  const foreign = { session: imported.session, source: imported.source, origin };
  const check = sessionCheck({ ...foreign, channels, missing: Object.fromEntries(missing) });
  const items = commits(hello.first_index === 0n ? 0n : hello.first_index - 1n);
  const addedBefore = writer.appended;
  let pieces: readonly Buffer[] = [];
  let frame: Event[] = [];
  /** Items whose last event is in it. */
  let waiting: readonly bigint[] = [];
  let hasBegun = false;
  /** An earlier import has ended it, as it went on when it was exported. */
  let wasEnded = false;
  let isOver = false;

  async function take({ index, what }: Item): Promise<void> {
    if (isOver) throw refused("nothing can come after the end");
    items.began(index);
    if (what?.$case === "recorded") await takeRecorded(what.value, index);
    else if (what?.$case === "recorded_end") await end(what.value.events, index);
    else throw refused("an import consists of events, and their end");
    importing.onCommitted();
    await writer.room();
  }

  async function takeRecorded({ events, more }: Recorded, index: bigint): Promise<void> {
    if (more || pieces.length > 0) {
      pieces = [...pieces, ...events];
      const bytes = pieces.reduce((sum, { byteLength }) => sum + byteLength, 0);
      if (bytes > mostEventBytes) throw refused(`event ${check.events + 1} has more than ${mostEventBytes} bytes`);
      if (more) return;
      await takeBytes(Buffer.concat(pieces));
      pieces = [];
    } else {
      for (const event of events) await takeBytes(event);
    }
    if (frame.length === 0) items.finished(index, writer.appended);
    else waiting = [...waiting, index];
  }

  async function takeBytes(bytes: Uint8Array): Promise<void> {
    const event = read(bytes, check.events + 1);
    const unfit = check.next(event);
    if (unfit !== undefined) throw refused(`event ${check.events + 1}: ${unfit}`);
    await takeEvent(movedTo({ session, origin, labels: hello.labels }, event));
  }

  async function takeEvent(event: Event): Promise<void> {
    if (await isThere(event)) return;
    if (frame[0] !== undefined && !isOfFrame(event, frame[0])) flush(true);
    frame.push(event);
    const bytes = frame.reduce((sum, { original }) => sum + (original?.bytes.byteLength ?? 0), 0);
    if (frame.length >= largestBatch.messages || bytes >= largestBatch.bytes) flush(false);
  }

  /** True when the log has it, or had it: text goes in time. What imports themselves have told is not compared. */
  async function isThere(event: Event): Promise<boolean> {
    for (let next = await known.peek(); next !== undefined; next = await known.peek()) {
      const isSame = isSameEvent(next, event);
      if (isSame || isOfImport(next)) {
        if (!isSame && hasExpired(event)) return true;
        known.skip();
        if (isOfImport(next)) wasEnded = next.kind === "session.ended";
        if (isSame) return true;
      } else if (isOfImport(event) || hasExpired(event)) return true;
      else {
        throw refused(
          `session ${session} is in ${source} already, but its event ${check.events} is another one there, ${next.kind}: \`tapedeck erase --session ${session}\` removes it`,
        );
      }
    }
    return false;
  }

  function hasExpired(event: Event): boolean {
    if (!book.expires || !isText([event])) return false;
    return numbers.session !== session || event.ordinal <= BigInt(numbers.ordinal(event.channel));
  }

  /** Gives the log the frame that waits. `isWhole`: as far as the file has it. */
  function flush(isWhole: boolean): void {
    const [first] = frame;
    if (first === undefined) return;
    if (!hasBegun) begin();
    const expires = isWhole && first.channel !== ownChannel && isText(frame);
    const numbered = frame.map((event) => numbers.imported(event, expires));
    for (const { message, event } of numbered) {
      if (message.event.byteLength <= frameBytes + besideFrameBytes) continue;
      throw refused(`event ${event.id} has ${message.event.byteLength} bytes: this log does not take so large ones`);
    }
    const messages = book.publish(numbered);
    for (const index of waiting) items.finished(index, messages);
    waiting = [];
    frame = [];
  }

  /** What is known here must still be the newest when this session has come. */
  function begin(): void {
    const later = history.sessions.find(({ id }) => id > session);
    if (later !== undefined) {
      throw refused(
        `${source} has a later session, ${later.id}, and sessions come one after the other: import this one as another project, such as --project ${sourceParts(source).project}-import`,
      );
    }
    hasBegun = true;
    numbers.unsettle();
    const at = momentNow();
    const connection = ulid();
    const began = importBegan(connection, hello.tap, imported);
    book.publish([...lostBefore()]);
    book.publish([...book.introduction(at), book.own("", began, at)]);
    if (mine === undefined) numbers.begin(session);
    else if (numbers.session !== session) numbers.goOn(session, known.last);
    if (wasEnded) book.publish([book.own(session, importContinues(connection, imported), history.lastAt ?? at)]);
  }

  /** A recorder was killed before it could tell that its connection was lost; maybe one that began this very import. */
  function lostBefore(): readonly Numbered[] {
    const { connection } = history;
    if (connection === undefined || connection.lost) return [];
    const { id, address } = connection;
    const lost = upstreamLost({ connection: id, address }, "a session is imported", true);
    return [book.own(isImport(connection) ? "" : connection.session, lost, momentNow())];
  }

  async function end(events: bigint, index: bigint): Promise<void> {
    const came = BigInt(check.events);
    const unfit = pieces.length > 0 ? "the last event is not whole" : check.end();
    if (unfit !== undefined) throw refused(unfit);
    if (events !== came) throw refused(`${events} events were to come, and ${came} came`);
    isOver = true;
    flush(true);
    // What is there beyond: the end that an import gave it, or what a later export had of it.
    if ((await known.peek()) === undefined) finish();
    items.finished(index, writer.appended);
  }

  /** Only of what was imported: a session that is at home here may go on. */
  function finish(): void {
    const { connection, lastAt = momentNow() } = history;
    if (connection === undefined || connection.lost || connection.address !== importAddress(imported)) return;
    const { id, address } = connection;
    const ended = check.isOpen ? [book.own(session, importedEnd(imported), lastAt)] : [];
    const lost = upstreamLost({ connection: id, address }, "all of it is imported");
    book.publish([...ended, book.own("", lost, momentNow())]);
  }

  const importing: ImportedSession = {
    take,
    committed: () => items.upTo(writer.acknowledged),
    onCommitted: () => {},
    async drained() {
      if (!isOver) throw refused("the import was broken off: it has no end");
      await writer.reached(writer.appended);
    },
    advance: async () => {},
    waiting: false,
    connected: false,
    ended: writer.ended,
    session,
    get added() {
      return writer.appended - addedBefore;
    },
    async [Symbol.asyncDispose]() {
      closing.abort();
      await owned.disposeAsync();
    },
  };
  const owned = stack.move();
  return importing;
}

function read(bytes: Uint8Array, count: number): Event {
  try {
    return decodeEvent(bytes);
  } catch {
    throw refused(`event ${count} can't be read`);
  }
}

function isOfFrame({ channel, frame_ordinal }: Event, first: Event): boolean {
  return channel !== ownChannel && channel === first.channel && frame_ordinal === first.frame_ordinal;
}

function refused(message: string): TapedeckError {
  return new TapedeckError("invalid_argument", message, { field: "imported" });
}
