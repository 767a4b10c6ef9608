import { abortable } from "../../sync/abortable.ts";
import type { Shift } from "../live/shift.ts";
import { type HeldBatches, type HeldEvent, type LogReader, LogReplacedError, type ReadFrom } from "../log.ts";
import { earlierOf, endOf, firstMessageAfter, laterOf, mayHoldEvents, type Offset, sequenceOf } from "../offset.ts";
import type { HistoryPage, ReadPage } from "./history-page.ts";
import { HistoryPages } from "./history-pages.ts";
import { SubjectReader } from "./subject-reader.ts";

/** A reader without a page reads at least this many events by itself. */
const eventsAlone = 1_024;

type SharedHistoryDeps = Pick<LogReader, "historyBatches"> & { readonly readPage: ReadPage; readonly shift: Shift };

/**
 * History for those who follow: readers at nearly the same place share one read of the log. It is read page by page, and
 * an event of a page is decoded and rendered once for all of them, as it is from the ring.
 *
 * A reader reads the log by itself, as if there were no others, where it is alone, where there is no room for a page, where
 * the log can't be read, and where it was so slow that its page is gone.
 */
export class SharedHistory {
  readonly #deps: SharedHistoryDeps;
  readonly #pages: HistoryPages;
  #readers = 0;

  constructor(deps: SharedHistoryDeps) {
    this.#deps = deps;
    this.#pages = new HistoryPages(deps.readPage);
  }

  /** See LogReader.historyBatches. */
  async *batches(from: ReadFrom, untilOffset: Offset, signal: AbortSignal): HeldBatches {
    this.#readers++;
    try {
      yield* new Reading({ ...this.#deps, pages: this.#pages, isAlone: () => this.#readers === 1 }, from, {
        untilOffset,
        signal,
      }).batches();
    } finally {
      this.#readers--;
    }
  }

  /** The session was erased: its events up to there. */
  forget(session: string, erasedAt: Offset): void {
    this.#pages.forget(session, erasedAt);
  }
}

type ReadingDeps = SharedHistoryDeps & { readonly pages: HistoryPages; readonly isAlone: () => boolean };

/** One reader's way through a range. */
class Reading {
  readonly #deps: ReadingDeps;
  readonly #subjects: readonly string[];
  readonly #untilOffset: Offset;
  readonly #signal: AbortSignal;
  readonly #reader: SubjectReader;
  /** Every match up to this offset was delivered. */
  #done: Offset;
  #next: "a page" | "a page from here" | "the log" = "a page";

  constructor(
    deps: ReadingDeps,
    { afterOffset, subjects }: ReadFrom,
    { untilOffset, signal }: { readonly untilOffset: Offset; readonly signal: AbortSignal },
  ) {
    [this.#deps, this.#subjects, this.#untilOffset, this.#signal] = [deps, subjects, untilOffset, signal];
    this.#done = afterOffset;
    this.#reader = new SubjectReader(subjects, deps.pages);
  }

  async *batches(): HeldBatches {
    while (mayHoldEvents(this.#done, this.#untilOffset) && !this.#signal.aborted) {
      const page = this.#page();
      if (page === undefined) yield* this.#fromLog();
      else yield* this.#from(page);
    }
  }

  /** Undefined: the log is to be read. */
  #page(): HistoryPage | undefined {
    if (this.#deps.isAlone() || this.#next === "the log") return undefined;
    const [next, last] = [firstMessageAfter(this.#done), sequenceOf(this.#untilOffset)];
    return this.#next === "a page" ? this.#reader.pageWith(next, last) : this.#reader.pageFrom(next, last);
  }

  async *#fromLog(): HeldBatches {
    this.#next = "a page";
    let count = 0;
    const from = { afterOffset: this.#done, subjects: this.#subjects };
    for await (const batch of this.#deps.historyBatches(from, this.#untilOffset, this.#signal)) {
      yield batch;
      this.#done = (batch.at(-1) as HeldEvent).offset;
      count += batch.length;
      if (count >= eventsAlone && !this.#deps.isAlone()) return;
    }
    if (!this.#signal.aborted) this.#done = this.#untilOffset;
  }

  async *#from(page: HistoryPage): HeldBatches {
    using _reader = page.enter();
    if (!(await this.#isReady(page))) return;
    const { shift } = this.#deps;
    const first = page.indexAfter(this.#done);
    let matched = 0;
    let index = first;
    for (;;) {
      if (shift.isOver) await shift.next();
      if (page.isTimedOut) this.#next = "the log";
      if (page.isDropped || this.#signal.aborted) return;
      page.use();
      const { batch, end } = this.#reader.batchAt(page, index, this.#untilOffset);
      if (end === index) break;
      index = end;
      matched += batch.length;
      const last = batch.at(-1);
      if (last === undefined) continue;
      yield batch;
      this.#done = last.offset;
    }
    this.#done = laterOf(this.#done, earlierOf(endOf(page.upTo), this.#untilOffset));
    this.#next = "a page";
    this.#reader.passed(page, { seen: index - first, matched });
  }

  /** Whether it has what comes next. Otherwise `#next` says where to look for that. */
  async #isReady(page: HistoryPage): Promise<boolean> {
    try {
      await abortable(page.ready, this.#signal);
    } catch (error) {
      if (error instanceof LogReplacedError) throw error;
      this.#next = "the log";
      return false;
    }
    // A session was erased while it was read.
    if (page.isDropped) return false;
    if (page.upTo >= firstMessageAfter(this.#done)) return true;
    this.#next = "a page from here";
    return false;
  }
}
