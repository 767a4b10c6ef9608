import { afterEach, expect, it, vi } from "vitest";
import { logStart } from "../offset.ts";
import type { PageContent } from "./history-page.ts";
import { HistoryPages } from "./history-pages.ts";

afterEach(() => {
  vi.useRealTimers();
});

const rangeFrom = (first: number) => ({ first, last: first + 99, subjects: [] });

it("all pages together have a bound, and what somebody reads is not dropped for another place", async () => {
  const reads: { readonly content: (content: PageContent) => void; readonly signal: AbortSignal }[] = [];
  const pages = new HistoryPages((_, signal) => {
    const read = Promise.withResolvers<PageContent | undefined>();
    reads.push({ content: read.resolve, signal });
    return read.promise;
  });
  const begun = Array.from({ length: 16 }, (_, index) => pages.begin(rangeFrom(1_000 * (index + 1))));
  const readers = begun.map((page) => page?.enter());
  expect(begun).not.toContain(undefined);
  expect(pages.begin(rangeFrom(100_000))).toBe(undefined);

  // A page that was read counts as much as it has. While a reader is inside it stays.
  const [first, second] = begun;
  reads[0]?.content({ events: [], upTo: 1_099, bytes: 1024 * 1024 });
  await first?.ready;
  expect(pages.begin(rangeFrom(100_000))).toBe(undefined);
  readers[0]?.[Symbol.dispose]();
  expect(pages.begin(rangeFrom(100_000))).toBeDefined();
  expect(first?.isDropped).toBe(true);

  // Nobody is left to read for.
  readers[1]?.[Symbol.dispose]();
  expect(second?.isDropped).toBe(true);
  expect(reads[1]?.signal.aborted).toBe(true);

  // More than there is room for: its readers read by themselves.
  reads[2]?.content({ events: [], upTo: 3_099, bytes: 4 * 1024 * 1024 });
  await expect(begun[2]?.ready).rejects.toThrow("too large");
});

it("a page that nobody takes from is dropped, also with a reader inside", async () => {
  vi.useFakeTimers();
  const pages = new HistoryPages(async () => ({ events: [], upTo: 99, bytes: 100 }));
  const page = pages.begin(rangeFrom(1));
  using _reader = page?.enter();
  await page?.ready;
  for (let taken = 0; taken < 5; taken++) {
    vi.advanceTimersByTime(4_000);
    page?.use();
  }
  expect(page?.isDropped).toBe(false);
  vi.advanceTimersByTime(5_000);
  expect(page?.isTimedOut).toBe(true);
  expect(page?.indexAfter(logStart)).toBe(0);
  expect(pages.find(() => true)).toBe(undefined);
});
