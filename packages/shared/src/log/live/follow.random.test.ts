import { expect, it } from "vitest";
import type { SourceName } from "../../source.ts";
import { Semaphore } from "../../sync/semaphore.ts";
import { testWriter } from "../../testing/log-messages.ts";
import { startTestNats } from "../../testing/nats.ts";
import { connectThroughRestarts } from "../../testing/nats-connection.ts";
import { searched } from "../../testing/searches.ts";
import { seeded } from "../../testing/seeded.ts";
import { testSources, testWorkspace } from "../../testing/test-log.ts";
import { until } from "../../testing/until.ts";
import { openLog } from "../jetstream.ts";
import type { RecordedEvent } from "../log.ts";
import { logStart, type Offset } from "../offset.ts";
import { sourceFilter } from "../subjects.ts";

const sources = testSources;
const isLong = searched({ short: 0, long: 1 }) === 1;

type Follower = { readonly want: readonly SourceName[]; readonly after: Offset; readonly seen: RecordedEvent[] };

/** A log whose server can be killed. What a kill interrupts is not a write: the writers wait for the server. */
async function startFragileLog() {
  const server = await startTestNats({ syncAlways: true });
  const nc = await connectThroughRestarts(server.url);
  // A small ring makes followers fall out of it and come back all the time.
  const log = await openLog(nc, {
    workspace: testWorkspace,
    syncKnown: true,
    ring: { entries: 16, bytes: 1e6 },
    historyReaders: new Semaphore(3),
  });
  return {
    ...log,
    async outage(source: SourceName) {
      await server.kill();
      await server.restart();
      await until(() => log.writer.lastOf(source).then(() => true), { message: "the log to answer again" });
    },
    async [Symbol.asyncDispose]() {
      await log[Symbol.asyncDispose]();
      await nc.close();
      await server[Symbol.asyncDispose]();
    },
  };
}

it("many followers that begin anywhere, at any time and pace, see each event once and in order", async () => {
  await using log = await startFragileLog();
  const abort = new AbortController();
  // Each source has messages of another size.
  const writers = sources.map((source, i) => ({
    source,
    ...testWriter(log.writer, source, { perMessage: 1 + 2 * i }),
  }));
  const written: { offset: Offset; source: SourceName }[] = [];
  const followers: Follower[] = [];
  const running: Promise<void>[] = [];
  const caughtUp: Offset[] = [];
  const random = seeded("followers");
  const chance = (part: number) => random.below(1_000) < part * 1_000;

  const subscribe = () => {
    const want = sources.filter(() => chance(0.5));
    const after = written[random.below(written.length + 1) - 1]?.offset ?? logStart;
    const follower: Follower = { want, after, seen: [] };
    const slow = chance(0.2);
    followers.push(follower);
    const options = {
      signal: abort.signal,
      caughtUp: (end: Offset) => void caughtUp.push(end),
      isPatient: chance(0.5),
    };
    const events = log.reader.follow({ afterOffset: after, subjects: want.map(sourceFilter) }, options);
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
    const before = writer.written.length;
    await writer.append(1 + random.below(12));
    for (const offset of writer.written.slice(before)) written.push({ offset, source: writer.source });
    for (let i = random.below(3); i > 0; i--) subscribe();
    if (isLong && chance(0.02)) await log.outage(writer.source);
  }

  const expected = ({ want, after }: Follower) =>
    written.filter(({ offset, source }) => offset > after && (want.length === 0 || want.includes(source)));
  await until(() => followers.every((follower) => follower.seen.length >= expected(follower).length), {
    message: "all events to arrive",
    // Only the long search comes near it: a thousand followers read history with three readers.
    deadlineMs: 500_000,
  });
  await until(() => caughtUp.length >= followers.length, { message: "all to know that they have caught up" });
  abort.abort();
  await Promise.all(running);
  for (const follower of followers) {
    expect(follower.seen.map(({ offset }) => offset)).toEqual(expected(follower).map(({ offset }) => offset));
  }
  expect(caughtUp.length).toBe(followers.length);
});
