import type { Offset, Sequence } from "../offset.ts";
import type { MessageRange } from "../reading/history.ts";
import { HistoryPage, type PageOwner, pageBytes, type ReadPage } from "./history-page.ts";

/** All pages together. A page that is being read counts as a full one. */
const maxBytes = 16 * pageBytes;

/** The pages of history that are in memory, or are being read. */
export class HistoryPages implements PageOwner {
  readonly #read: ReadPage;
  /** The pages that were started first come first. */
  readonly #pages = new Set<HistoryPage>();

  constructor(read: ReadPage) {
    this.#read = read;
  }

  /** Undefined: there is no room. */
  begin(range: MessageRange): HistoryPage | undefined {
    if (!this.hasRoom(pageBytes)) return undefined;
    const page = new HistoryPage(range, this.#read, this);
    this.#pages.add(page);
    return page;
  }

  find(predicate: (page: HistoryPage) => boolean): HistoryPage | undefined {
    return [...this.#pages].find(predicate);
  }

  /** Where the first page of a key begins that does so after this message. */
  firstAfter(message: Sequence, key: string): Sequence | undefined {
    const firsts = [...this.#pages].filter((page) => page.key === key).map(({ range }) => range.first);
    const later = firsts.filter((first) => first > message);
    return later.length === 0 ? undefined : Math.min(...later);
  }

  /** Makes room for `bytes` more, if possible. */
  hasRoom(bytes: number): boolean {
    let free = maxBytes - bytes;
    for (const page of this.#pages) free -= page.bytes;
    for (const page of this.#pages) {
      if (free >= 0) break;
      if (page.isUsed || !page.isReady) continue;
      free += page.bytes;
      page.drop();
    }
    return free >= 0;
  }

  remove(page: HistoryPage): void {
    this.#pages.delete(page);
  }

  /** The session was erased: its events up to there. */
  forget(session: string, erasedAt: Offset): void {
    for (const page of [...this.#pages]) page.forget(session, erasedAt);
  }
}
