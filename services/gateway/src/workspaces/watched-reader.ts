import type { LogReader, PageReader } from "@tapedeck/shared/log/log";

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
    lastMatch: asked(reader.lastMatch, watch),
    follow: reading(reader.follow, watch),
    readBatches: reading(reader.readBatches, watch),
    historyBatches: reading(reader.historyBatches, watch),
    followBatches: reading(reader.followBatches, watch),
    pages: watchedPages(reader.pages, watch),
  };
}

function watchedPages(pages: PageReader, watch: ReaderWatch): PageReader {
  return {
    epoch: pages.epoch,
    formerEpochs: pages.formerEpochs,
    bounds: asked(pages.bounds, watch),
    now: asked(pages.now, watch),
    assertRetained: asked(pages.assertRetained, watch),
    firstSince: asked(pages.firstSince, watch),
    read: reading(pages.read, watch),
    history: reading(pages.history, watch),
  };
}

function asked<Args extends readonly unknown[], T>(
  ask: (...args: Args) => Promise<T>,
  { failed }: ReaderWatch,
): (...args: Args) => Promise<T> {
  return async (...args) => {
    try {
      return await ask(...args);
    } catch (error) {
      failed(error);
      throw error;
    }
  };
}

function reading<Args extends readonly unknown[], T>(
  read: (...args: Args) => AsyncGenerator<T, void>,
  { failed, began }: ReaderWatch,
): (...args: Args) => AsyncGenerator<T, void> {
  return async function* (...args) {
    const ended = began();
    try {
      yield* read(...args);
    } catch (error) {
      failed(error);
      throw error;
    } finally {
      ended();
    }
  };
}
