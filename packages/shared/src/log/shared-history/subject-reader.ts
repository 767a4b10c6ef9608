import type { SharedEvent } from "../live/shared-event.ts";
import type { Offset, Sequence } from "../offset.ts";
import type { MessageRange } from "../reading/history.ts";
import { subjectMatcher, subjectMatches } from "../subject-match.ts";
import { type HistoryPage, keyOf, pageMessages } from "./history-page.ts";
import type { HistoryPages } from "./history-pages.ts";

/** Readers at different places of such a block of messages begin with the same page. */
const alignedMessages = 256;

/** A batch examines this many events, and ends at this many bytes, as one of the ring does. */
const eventsPerBatch = 32;
const bytesPerBatch = 64 * 1024;

/** A reader begins a page by the subjects of others only where at least this share of the events matches. */
const minMatchedShare = 1 / 4;

/** One reader's way through the pages, by its subjects. */
export class SubjectReader {
  readonly #pages: HistoryPages;
  readonly #subjects: readonly string[];
  readonly #key: string;
  readonly #matches: (tokens: readonly string[]) => boolean;
  /** By the keys of pages: whether they have all that matches. */
  readonly #isCovered = new Map<string, boolean>();
  /** The keys of pages of which little matches. */
  readonly #sparse = new Set<string>();

  constructor(subjects: readonly string[], pages: HistoryPages) {
    this.#pages = pages;
    this.#subjects = subjects;
    this.#key = keyOf(subjects);
    this.#matches = subjectMatcher(subjects);
  }

  /** A page with this message, or one that may have it when it is read. Undefined: there is no room. */
  pageWith(next: Sequence, last: Sequence): HistoryPage | undefined {
    const known = this.#pages.find((page) => page.mayHave(next) && this.#hasAll(page));
    return known ?? this.#pages.begin(this.#rangeAt(next, last, true));
  }

  /** A page that begins with this message: large messages have filled one before its place. */
  pageFrom(next: Sequence, last: Sequence): HistoryPage | undefined {
    const isSure = (page: HistoryPage) => page.isReady || page.range.first === next;
    const known = this.#pages.find((page) => page.mayHave(next) && isSure(page) && this.#hasAll(page));
    return known ?? this.#pages.begin(this.#rangeAt(next, last, false));
  }

  /** The next events from an index of a page on, up to an offset; and the index behind them. */
  batchAt(
    page: HistoryPage,
    index: number,
    untilOffset: Offset,
  ): { readonly batch: SharedEvent[]; readonly end: number } {
    const isOwn = page.key === this.#key;
    const batch: SharedEvent[] = [];
    let bytes = 0;
    let end = index;
    while (end < index + eventsPerBatch && bytes < bytesPerBatch) {
      const event = page.events[end];
      if (event === undefined || event.offset > untilOffset) break;
      end++;
      if (!isOwn && !this.#matches(event.tokens)) continue;
      batch.push(event);
      bytes += event.bytes?.byteLength ?? 0;
    }
    return { batch, end };
  }

  /** It has read a page. */
  passed(page: HistoryPage, { seen, matched }: { readonly seen: number; readonly matched: number }): void {
    if (page.key === this.#key || seen === 0) return;
    if (matched < seen * minMatchedShare) this.#sparse.add(page.key);
    else this.#sparse.delete(page.key);
  }

  #hasAll({ key, range }: HistoryPage): boolean {
    if (key === this.#key) return true;
    let isCovered = this.#isCovered.get(key);
    if (isCovered === undefined) {
      isCovered = areCovered(this.#subjects, range.subjects);
      this.#isCovered.set(key, isCovered);
    }
    return isCovered;
  }

  #rangeAt(next: Sequence, last: Sequence, isAligned: boolean): MessageRange {
    const subjects = this.#subjectsAt(next);
    const key = keyOf(subjects);
    // From message 1 on a page begins with what the log still has: that is for those alone who begin there.
    const block = Math.min(next, Math.max(2, next - ((next - 1) % alignedMessages)));
    const isKnown = this.#pages.find((page) => page.key === key && page.upTo >= block && page.range.first <= next);
    const after = this.#pages.firstAfter(next, key);
    const first = isAligned && isKnown === undefined ? block : next;
    return { first, last: after === undefined ? last : Math.min(last, after - 1), subjects };
  }

  /** Those of others nearby, where they read not much more. */
  #subjectsAt(next: Sequence): readonly string[] {
    const isNear = ({ range, upTo }: HistoryPage) => range.first <= next + pageMessages && upTo >= next - pageMessages;
    const isShared = (page: HistoryPage) =>
      page.key !== this.#key && isNear(page) && !this.#sparse.has(page.key) && this.#hasAll(page);
    return this.#pages.find(isShared)?.range.subjects ?? this.#subjects;
  }
}

/** Whether the filters let everything through that the subjects match. */
function areCovered(subjects: readonly string[], filters: readonly string[]): boolean {
  if (filters.length === 0) return true;
  return subjects.length > 0 && subjects.every((subject) => filters.some((filter) => subjectMatches(filter, subject)));
}
