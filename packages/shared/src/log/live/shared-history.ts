import { abortable } from "../../sync/abortable.ts";
import { startTimer, stopTimer, type Timer } from "../../sync/timers.ts";
import type { HeldBatches, HeldEvent, LogReader, ReadFrom, RecordedEvent } from "../log.ts";
import { earlierOf, laterOf, type Offset } from "../offset.ts";
import { subjectMatcher } from "../subject-match.ts";

/** A chunk ends after so many bytes of events; a single message always fits. */
const chunkBytes = 1024 * 1024;
/** The newest chunks are kept for those who are a little further behind. */
const maxChunks = 4;
const keepMs = 1_000;
const eventsPerBatch = 32;

/** Events that follow an offset. */
type Chunk = {
  readonly afterOffset: Offset;
  readonly read: Promise<readonly SharedEvent[]>;
  /** The offset of the last event, or the end of what was read; undefined while it is read. */
  upTo: Offset | undefined;
  waiting: number;
  readonly over: AbortController;
};

/**
 * One read of history for all followers that have fallen behind at nearly the same place, whatever their filters: an event
 * is read, decoded and rendered once for them, as it is from the ring. Each of them would otherwise read the log by itself,
 * and wait for its turn behind all others.
 */
export class SharedHistory {
  readonly #read: LogReader["historyBatches"];
  #chunks: readonly Chunk[] = [];
  #cleaning: Timer | undefined;

  constructor(read: LogReader["historyBatches"]) {
    this.#read = read;
  }

  /** See LogReader.historyBatches. */
  async *batches({ afterOffset, subjects }: ReadFrom, untilOffset: Offset, signal: AbortSignal): HeldBatches {
    const matches = subjectMatcher(subjects);
    let done = afterOffset;
    while (done < untilOffset && !signal.aborted) {
      const { events, upTo } = await this.#eventsAfter(done, untilOffset, signal);
      const from = done;
      const wanted = events.filter(({ offset, tokens }) => offset > from && offset <= untilOffset && matches(tokens));
      for (let at = 0; at < wanted.length && !signal.aborted; at += eventsPerBatch) {
        yield wanted.slice(at, at + eventsPerBatch);
      }
      done = laterOf(done, earlierOf(upTo, untilOffset));
    }
  }

  async #eventsAfter(done: Offset, untilOffset: Offset, signal: AbortSignal) {
    const chunk = this.#chunkAt(done) ?? this.#begin(done, untilOffset);
    chunk.waiting++;
    try {
      const events = await abortable(chunk.read, signal);
      return { events, upTo: chunk.upTo ?? done };
    } catch (error) {
      if (signal.aborted) return { events: [], upTo: done };
      throw error;
    } finally {
      chunk.waiting--;
      // Nobody is left to read for.
      if (chunk.waiting === 0 && chunk.upTo === undefined) this.#drop(chunk);
    }
  }

  #chunkAt(done: Offset): Chunk | undefined {
    return this.#chunks.findLast(({ afterOffset, upTo }) => afterOffset <= done && (upTo === undefined || upTo > done));
  }

  #begin(afterOffset: Offset, untilOffset: Offset): Chunk {
    const over = new AbortController();
    const chunk: Chunk = {
      afterOffset,
      read: this.#readChunk(afterOffset, untilOffset, over.signal).then(({ events, upTo }) => {
        chunk.upTo = upTo;
        this.#cleanLater();
        return events;
      }),
      upTo: undefined,
      waiting: 0,
      over,
    };
    chunk.read.catch(() => this.#drop(chunk));
    this.#chunks = [...this.#chunks, chunk].slice(-maxChunks);
    return chunk;
  }

  #drop(chunk: Chunk): void {
    chunk.over.abort();
    this.#chunks = this.#chunks.filter((one) => one !== chunk);
  }

  async #readChunk(afterOffset: Offset, untilOffset: Offset, signal: AbortSignal) {
    const events: SharedEvent[] = [];
    let bytes = 0;
    for await (const batch of this.#read({ afterOffset, subjects: [] }, untilOffset, signal)) {
      for (const event of batch) {
        events.push(new SharedEvent(event));
        bytes += event.bytes?.byteLength ?? 0;
      }
      const last = batch.at(-1);
      if (last !== undefined && bytes >= chunkBytes) return { events, upTo: last.offset };
    }
    signal.throwIfAborted();
    return { events, upTo: untilOffset };
  }

  /** What the log has dropped or erased meanwhile must not be served from here for long. */
  #cleanLater(): void {
    if (this.#cleaning !== undefined) stopTimer(this.#cleaning);
    this.#cleaning = startTimer(() => {
      this.#chunks = this.#chunks.filter(({ upTo }) => upTo === undefined);
    }, keepMs).unref();
  }
}

/** An event that several followers get. */
class SharedEvent implements HeldEvent {
  readonly offset: Offset;
  readonly subject: string;
  readonly tokens: readonly string[];
  readonly isShared = true;
  readonly #event: HeldEvent;
  #recorded: RecordedEvent | undefined;

  constructor(event: HeldEvent) {
    this.offset = event.offset;
    this.subject = event.subject;
    this.tokens = event.subject.split(".");
    this.#event = event;
  }

  get bytes(): Uint8Array | undefined {
    return this.#event.bytes;
  }

  /** Decoded once for all who follow. */
  decode(): RecordedEvent | undefined {
    this.#recorded ??= this.#event.decode();
    return this.#recorded;
  }
}
