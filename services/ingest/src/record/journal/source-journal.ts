// One source in the log, as its recorder knows it.
//
//   facts --numbers--> numbered events --publish()--> history (at once)
//                                                \--> writer: queue --> log --> acknowledged
//
// 1. Events are published in the order in which they were numbered.
// 2. The history has events that the log has not acknowledged yet. A journal whose writer has ended is never used again.
// 3. If the last message may expire, a checkpoint repeats the source's cursor before that.
// How a message gets into the log: writer.ts. What a lost answer means: settle.ts.
import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import type { Hello } from "@tapedeck/proto/tapedeck/v1/recorder";
import { ownChannel } from "@tapedeck/shared/events/kinds";
import type { PublishOutcome } from "@tapedeck/shared/log/log";
import { offsetOf } from "@tapedeck/shared/log/offset";
import type { SourceName } from "@tapedeck/shared/source";
import { startTimer, stopTimer, type Timer } from "@tapedeck/shared/sync/timers";
import type { Timestamp } from "@tapedeck/shared/time/timestamp";
import { timestampNow } from "@tapedeck/shared/time/timestamp";
import { ulid } from "ulid";
import type { Fact } from "../../normalize/fact.ts";
import { type Numbered, Numbering, raisedCursor, type TextLife } from "../frames/numbering.ts";
import type { Memory } from "../imported/memory.ts";
import { sourceAdded, sourceCheckpoint } from "../own-facts/source-facts.ts";
import { type LoadedHistory, loadHistory, type RecordingLog, type RememberedHistory } from "./load-history.ts";
import type { SourceHistory } from "./source-history.ts";
import { SourceWriter } from "./writer.ts";

export type SourceJournalOptions = {
  readonly log: RecordingLog;
  readonly source: SourceName;
  readonly hello: Hello;
  readonly signal: AbortSignal;
  /** Absent: text never expires. */
  readonly life?: TextLife | undefined;
  /** Any session of the source may continue, not only recent ones. */
  readonly allSessions?: boolean;
  /** With `allSessions`: keeps the history between one journal of the source and the next. */
  readonly memory?: Memory<SourceName, RememberedHistory> | undefined;
  readonly onAcknowledged: (events: number) => void;
  readonly onPublishFailure: (published: Exclude<PublishOutcome, { outcome: "acknowledged" }>) => void;
};

/** Waits while the log is unavailable. Rejects when the signal aborts. */
export async function openSourceJournal(options: SourceJournalOptions): Promise<SourceJournal> {
  const { log, source, signal, allSessions = false, memory } = options;
  const remembered = memory?.take(source);
  const loaded = await loadHistory({ log, source, signal, allSessions, remembered });
  return new SourceJournal(options, loaded, remembered?.at ?? 0);
}

/** One source's part of the log: its history, and the events that are added to it, in order. */
export class SourceJournal implements AsyncDisposable {
  readonly history: SourceHistory;
  readonly numbers: Numbering;
  readonly writer: SourceWriter;
  /** Called with each event that is on its way to the log. */
  readonly listeners = new Set<(event: Event) => void>();
  /** Text of the source expires, or did. */
  readonly expires: boolean;

  readonly #options: SourceJournalOptions;
  readonly #loaded: LoadedHistory;
  readonly #writerId = ulid();
  #lastIsOwn: boolean;
  #lastAt: number;
  #checkpointTimer: Timer | undefined;

  /** `lastAt`: when the loaded history's last message was the last, by our clock. */
  constructor(options: SourceJournalOptions, loaded: LoadedHistory, lastAt: number) {
    this.#options = options;
    this.#loaded = loaded;
    const { history, lastSeq, cursor, lastStays, expired } = loaded;
    const { log, source, life } = options;
    this.history = history;
    // Numbers are never used twice: the ordinals can't have advanced further than by the source's expired events.
    this.numbers = new Numbering(source, cursor && (expired > 0 ? raisedCursor(cursor, expired) : cursor), life);
    this.#lastIsOwn = lastStays;
    this.#lastAt = lastAt;
    this.writer = new SourceWriter({
      log: log.writer,
      source,
      writer: this.#writerId,
      afterSeq: lastSeq,
      onAcknowledged: (_, events, last) => {
        this.#lastAt = Date.now();
        log.ends?.reached(source, last.seq, last.cursor);
        options.onAcknowledged(events);
      },
      onPublishFailure: options.onPublishFailure,
    });
    const changesLife = cursor !== undefined && (cursor.textTtl !== life?.textTtl || (life && !lastStays));
    if (changesLife) this.#publishCheckpoint();
    this.expires = life !== undefined || cursor?.textTtl !== undefined || history.expires;
  }

  /** Numbers a fact that Tapedeck states now. The session is empty for facts about the source. */
  own(session: string, fact: Fact, observedAt: Timestamp, notBefore?: Timestamp): Numbered {
    return this.numbers.own(session, fact, { observedAt, ...(notBefore && { notBefore }) });
  }

  /**
   * Adds events. Call it in the order in which they were numbered, and before anything else is numbered. Those that fit
   * together get into the log together; a crash may separate others, in their order. Returns how many events have been
   * added in total by then.
   */
  publish(numbered: readonly Numbered[]): number {
    for (const { event } of numbered) {
      this.history.observe(event, offsetOf(this.writer.lastSeq + 1));
      for (const listener of this.listeners) listener(event);
    }
    const last = numbered.at(-1);
    if (last !== undefined) {
      this.#lastIsOwn = last.event.channel === ownChannel;
      this.#scheduleCheckpoint(last.written.ttlSeconds);
    }
    return this.writer.append(numbered.map(({ written }) => written));
  }

  /** The events that must precede the first event of a source. */
  introduction(at: Timestamp): readonly Numbered[] {
    const { developer, project } = this.#options.hello;
    return this.history.known ? [] : [this.own("", sourceAdded(developer, project), at)];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    stopTimer(this.#checkpointTimer);
    await this.writer[Symbol.asyncDispose]();
    const { memory, source } = this.#options;
    // Otherwise the log may have more, or fewer, events than the history.
    if (memory === undefined || this.writer.acknowledged < this.writer.appended) return;
    const lastWriter = this.writer.appended > 0 ? this.#writerId : this.#loaded.lastWriter;
    const { history, writer } = this;
    memory.keep(source, {
      history,
      lastSeq: writer.lastSeq,
      lastWriter,
      lastStays: this.#lastIsOwn,
      at: this.#lastAt,
    });
  }

  /** The source's cursor must not be lost with a message that expires. */
  #scheduleCheckpoint(ttlSeconds: number | undefined): void {
    stopTimer(this.#checkpointTimer);
    if (ttlSeconds === undefined) return;
    this.#checkpointTimer = startTimer(() => this.#publishCheckpoint(), ttlSeconds * 500).unref();
  }

  #publishCheckpoint(): void {
    this.publish([this.own("", sourceCheckpoint(), timestampNow())]);
  }
}
