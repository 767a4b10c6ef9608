import { expect, test } from "vitest";
import type { SourceName } from "../source.ts";
import { testWriter } from "../testing/log-messages.ts";
import { searched } from "../testing/searches.ts";
import { seeded } from "../testing/seeded.ts";
import { startTestLog, testSources } from "../testing/test-log.ts";
import { until } from "../testing/until.ts";
import type { RecordedEvent } from "./log.ts";
import { endOf, type Offset, sequenceOf } from "./offset.ts";
import { sourceFilter } from "./subjects.ts";

const sources = testSources;

type Follower = { readonly want: readonly SourceName[]; readonly after: number; readonly seen: RecordedEvent[] };

test("many followers that begin anywhere, at any time and pace, see each event once and in order", async () => {
  // A small ring makes them fall out of it and come back all the time.
  await using log = await startTestLog({ ring: { entries: 16, bytes: 1e6 }, historyReaders: 3 });
  const abort = new AbortController();
  const writers = sources.map((source) => ({ source, ...testWriter(log.writer, source) }));
  const written: { seq: number; source: SourceName }[] = [];
  const followers: Follower[] = [];
  const running: Promise<void>[] = [];
  const caughtUp: Offset[] = [];
  const random = seeded("followers");
  const chance = (part: number) => random.below(1_000) < part * 1_000;

  const subscribe = () => {
    const want = sources.filter(() => chance(0.5));
    const after = random.below(written.length + 1);
    const follower: Follower = { want, after, seen: [] };
    const slow = chance(0.2);
    followers.push(follower);
    const options = { signal: abort.signal, caughtUp: (end: Offset) => void caughtUp.push(end) };
    const events = log.reader.follow({ afterOffset: endOf(after), subjects: want.map(sourceFilter) }, options);
    running.push(
      (async () => {
        for await (const recorded of events) {
          follower.seen.push(recorded);
          if (slow && chance(0.05)) await new Promise((resolve) => setTimeout(resolve, 5));
        }
      })(),
    );
  };

  while (followers.length < searched({ short: 60, long: 1_000 })) {
    const writer = writers[random.below(writers.length)];
    if (writer === undefined) continue;
    const last = await writer.append(1 + random.below(12));
    while (written.length < last) written.push({ seq: written.length + 1, source: writer.source });
    for (let i = random.below(3); i > 0; i--) subscribe();
  }

  const wanted = ({ want, after }: Follower) =>
    written.filter(({ seq, source }) => seq > after && (want.length === 0 || want.includes(source)));
  await until(() => followers.every((follower) => follower.seen.length >= wanted(follower).length), {
    message: "all events to arrive",
    // Only the long search comes near it: a thousand followers read history with three readers.
    deadlineMs: 500_000,
  });
  await until(() => caughtUp.length >= followers.length, { message: "all to know that they have caught up" });
  abort.abort();
  await Promise.all(running);
  for (const follower of followers) {
    expect(follower.seen.map(({ offset }) => sequenceOf(offset))).toEqual(wanted(follower).map(({ seq }) => seq));
  }
  expect(caughtUp.length).toBe(followers.length);
});
