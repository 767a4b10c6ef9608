import type { LogReader, PageReader } from "@tapedeck/shared/log/log";
import { passedOn } from "@tapedeck/shared/sync/passed-on";

export type ReaderWatch = {
  /** Called with what a question or a read rejects with. */
  readonly failed: (error: unknown) => void;
  /** Called when somebody begins to read; what it returns is called at the end. */
  readonly began: () => () => void;
};

/** The same reader, which reports who reads and what fails. */
export function watchedReader(reader: LogReader, watch: ReaderWatch): LogReader {
  return {
    ...reader,
    ...watchedPages(reader, watch),
    lastMatch: watchedCall(reader.lastMatch, watch),
    follow: watchedRead(reader.follow, watch),
    readBatches: watchedRead(reader.readBatches, watch),
    historyBatches: watchedRead(reader.historyBatches, watch),
    followBatches: watchedRead(reader.followBatches, watch),
    pages: watchedPages(reader.pages, watch),
  };
}

function watchedPages(pages: PageReader, watch: ReaderWatch): PageReader {
  return {
    epoch: pages.epoch,
    formerEpochs: pages.formerEpochs,
    bounds: watchedCall(pages.bounds, watch),
    now: watchedCall(pages.now, watch),
    assertRetained: watchedCall(pages.assertRetained, watch),
    firstSince: watchedCall(pages.firstSince, watch),
    read: watchedRead(pages.read, watch),
    history: watchedRead(pages.history, watch),
  };
}

function watchedCall<Args extends readonly unknown[], T>(
  call: (...args: Args) => Promise<T>,
  { failed }: ReaderWatch,
): (...args: Args) => Promise<T> {
  return async (...args) => {
    try {
      return await call(...args);
    } catch (error) {
      failed(error);
      throw error;
    }
  };
}

function watchedRead<Args extends readonly unknown[], T>(
  read: (...args: Args) => AsyncGenerator<T, void>,
  { failed, began }: ReaderWatch,
): (...args: Args) => AsyncGenerator<T, void> {
  return (...args) => {
    let ended = () => {};
    return passedOn(() => read(...args), {
      onStart() {
        ended = began();
      },
      onError: failed,
      onEnd: () => ended(),
    });
  };
}
