import { connect } from "nats";
import { expect, test } from "vitest";
import type { SourceName } from "../../source.ts";
import { testWriter } from "../../testing/log-messages.ts";
import { startTestLog, testSources } from "../../testing/test-log.ts";
import { openLog } from "../jetstream.ts";
import { logStart, type Offset } from "../offset.ts";
import { sourceFilter } from "../subjects.ts";

const [alice, bob] = testSources as [SourceName, SourceName];
const events = 300;

/** So many followers have all there is, then stop reading until the ring has none of what comes, and read on. */
async function readsOf(laggards: number) {
  await using written = await startTestLog();
  const servers = written.nc.getServer();
  const nc = await connect({ servers });
  await using log = await openLog(nc, { syncKnown: true, ring: { entries: 16, bytes: 1e6 }, historyReaders: 8 });
  const over = new AbortController();
  const [ofAlice, ofBob] = [testWriter(written.writer, alice), testWriter(written.writer, bob)];
  // Every fourth reads one source alone.
  const followers = await Promise.all(
    Array.from({ length: laggards }, async (_, nth) => {
      const subjects = nth % 4 === 0 ? [sourceFilter(alice)] : [];
      const caughtUp = Promise.withResolvers<Offset>();
      const options = { signal: over.signal, caughtUp: caughtUp.resolve };
      const read = log.reader.follow({ afterOffset: logStart, subjects }, options);
      const first = read.next();
      await caughtUp.promise;
      return { read, first, isFiltered: nth % 4 === 0 };
    }),
  );
  // Each has the first event, and asks for no more.
  await ofAlice.append(1);
  const seen = await Promise.all(followers.map(async ({ first }) => [(await first).value?.offset]));
  for (let n = 0; n < events; n += 2) {
    await ofAlice.append(1);
    await ofBob.append(1);
  }
  const before = nc.stats().inMsgs;
  await Promise.all(
    followers.map(async ({ read, isFiltered }, nth) => {
      const count = isFiltered ? events / 2 : events;
      for (let n = 0; n < count; n++) seen[nth]?.push((await read.next()).value?.offset);
    }),
  );
  const got = nc.stats().inMsgs - before;
  over.abort();
  await nc.close();
  return { got, seen };
}

test("a hundred followers that fall behind together read the log hardly more often than twenty", async () => {
  const [few, many] = [await readsOf(20), await readsOf(100)];
  console.log(`messages from NATS for 20 laggards: ${few.got}, for 100: ${many.got}`);
  for (const { seen } of [few, many]) {
    for (const [nth, offsets] of seen.entries()) {
      expect(offsets).toHaveLength(1 + (nth % 4 === 0 ? events / 2 : events));
      expect(offsets).toEqual([...new Set(offsets)].sort((a, b) => Number(a) - Number(b)));
      if (nth % 4 !== 0) expect(offsets).toEqual(seen[1]);
    }
  }
  // One read of the events, and what each asks for by itself: its last match.
  expect(few.got).toBeLessThan(3 * events);
  expect(many.got).toBeLessThan(few.got + 100 * 4 + events);
});
