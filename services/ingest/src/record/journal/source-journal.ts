import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import type { Hello } from "@tapedeck/proto/tapedeck/v1/recorder";
import type { LogWriter, Published } from "@tapedeck/shared/log/log";
import type { SourceName } from "@tapedeck/shared/source";
import type { Moment } from "@tapedeck/shared/time/moment";
import { momentNow } from "@tapedeck/shared/time/moment";
import { ulid } from "ulid";
import type { Fact } from "../../normalize/fact.ts";
import type { Numbered, Numbering, TextLife } from "../frames/numbering.ts";
import { numbering, ownChannel, raisedCursor } from "../frames/numbering.ts";
import type { Memory } from "../imported/memory.ts";
import { sourceAdded, sourceCheckpoint } from "../own-facts/source-facts.ts";
import {
  type LogPast,
  loadHistory,
  type RememberedHistory,
  type SourceEnds,
  type SourceHistory,
} from "./source-history.ts";
import { openWriter, type SourceWriter } from "./writer.ts";

export type BookOptions = {
  readonly log: { readonly writer: LogWriter; readonly reader: LogPast; readonly ends?: SourceEnds | undefined };
  readonly source: SourceName;
  readonly hello: Hello;
  readonly signal: AbortSignal;
  /** Absent: text stays in the log like all else. */
  readonly life?: TextLife | undefined;
  /** Any session of the source may be gone on with, not only recent ones. */
  readonly allSessions?: boolean;
  /** Nobody waits for what is published; see WriterOptions. */
  readonly together?: boolean;
  /** With `allSessions`: what the last book knew at its end. */
  readonly memory?: Memory<SourceName, RememberedHistory> | undefined;
  readonly onAcknowledged: (messages: number) => void;
  readonly onTrouble: (published: Exclude<Published, { outcome: "acknowledged" }>) => void;
};

/** One source's place in the log: what it says already, and what is added to it, in order. */
export type Book = AsyncDisposable & {
  readonly history: SourceHistory;
  readonly numbers: Numbering;
  readonly writer: SourceWriter;
  /** Something that Tapedeck says at this moment; the session is empty for facts about the source. */
  own(session: string, fact: Fact, at: Moment, notBefore?: Moment): Numbered;
  /**
   * Adds events that get into the log together. In the very order in which they were numbered, and before anything else
   * is numbered. Gives how many messages have been added when they are.
   */
  publish(numbered: readonly Numbered[]): number;
  /** What the first event of a source comes after. */
  introduction(at: Moment): readonly Numbered[];
  /** Told of each event when it is on its way to the log. */
  readonly listeners: Set<(event: Event) => void>;
  /** Text of the source expires, or did. */
  readonly expires: boolean;
};

/** The longest that a timer takes. */
const longestMs = 2 ** 31 - 1;

/** Rejects only when the signal aborts; waits while the log is away. */
export async function openBook({
  log,
  source,
  hello,
  signal,
  life,
  allSessions = false,
  memory,
  together = false,
  ...told
}: BookOptions): Promise<Book> {
  const remembered = memory?.take(source);
  const loaded = await loadHistory({ log, source, signal, allSessions, remembered });
  const { history, lastSeq, cursor, lastStays, expired } = loaded;
  // Sequences are never used twice: however many of the source's messages are gone, its ordinals came no further.
  const numbers = numbering(source, cursor && (expired > 0 ? raisedCursor(cursor, expired) : cursor), life);
  const listeners = new Set<(event: Event) => void>();
  const writerId = ulid();
  let lastIsOwn = lastStays;
  let lastAt = remembered?.at ?? 0;
  const writer = openWriter({
    log: log.writer,
    source,
    writer: writerId,
    afterSeq: lastSeq,
    together,
    onAcknowledged(_, messages, last) {
      lastAt = Date.now();
      log.ends?.reached(source, last.seq, last.cursor);
      told.onAcknowledged(messages);
    },
    onTrouble: told.onTrouble,
  });
  const own: Book["own"] = (session, fact, observedAt, notBefore) =>
    numbers.own(session, fact, { observedAt, ...(notBefore && { notBefore }) });
  let lastIsText: NodeJS.Timeout | undefined;
  const publish: Book["publish"] = (numbered) => {
    for (const { event } of numbered) {
      history.observe(event, writer.lastSeq + 1);
      for (const listener of listeners) listener(event);
    }
    lastIsOwn = numbered.at(-1) === undefined ? lastIsOwn : numbered.at(-1)?.event.channel === ownChannel;
    const ttlSeconds = numbered.at(-1)?.message.ttlSeconds;
    if (numbered.length > 0) clearTimeout(lastIsText);
    if (ttlSeconds !== undefined) lastIsText = setTimeout(checkpoint, Math.min(ttlSeconds * 500, longestMs)).unref();
    return writer.append(numbered.map(({ message }) => message));
  };
  // The source's cursor must not go with a message that expires.
  const checkpoint = () => void publish([own("", sourceCheckpoint(), momentNow())]);
  if (cursor !== undefined && (cursor.textTtl !== life?.textTtl || (life && !lastStays))) checkpoint();
  return {
    history,
    numbers,
    writer,
    own,
    publish,
    expires: life !== undefined || cursor?.textTtl !== undefined || history.expires,
    introduction: (at) => (history.known ? [] : [own("", sourceAdded(hello.developer, hello.project), at)]),
    listeners,
    async [Symbol.asyncDispose]() {
      clearTimeout(lastIsText);
      await writer[Symbol.asyncDispose]();
      // Else the log may have more, or less, than the history says.
      if (memory === undefined || writer.acknowledged < writer.appended) return;
      const lastWriter = writer.appended > 0 ? writerId : loaded.lastWriter;
      memory.keep(source, { history, lastSeq: writer.lastSeq, lastWriter, lastStays: lastIsOwn, at: lastAt });
    },
  };
}
