import { setTimeout as delay } from "node:timers/promises";
import { expect, it } from "vitest";
import { sourceName } from "../source.ts";
import { testWriter } from "../testing/log-messages.ts";
import { startTestNats } from "../testing/nats.ts";
import { connectThroughRestarts } from "../testing/nats-connection.ts";
import { testWorkspace } from "../testing/test-log.ts";
import { until } from "../testing/until.ts";
import { openLog } from "./jetstream.ts";
import type { RecordedEvent } from "./log.ts";
import { logStart, sequenceOf } from "./offset.ts";

const alice = sourceName({ workspace: "acme", developer: "alice", project: "shop", upstream: "skaffold" });
const awayMs = 60_000;
const promisedMs = 30_000;

it("the log works normally a few seconds after a minute of outage", async () => {
  await using server = await startTestNats({ syncAlways: true });
  const nc = await connectThroughRestarts(server.url);
  const warnings: string[] = [];
  await using log = await openLog(nc, {
    workspace: testWorkspace,
    syncKnown: true,
    warn: (message) => warnings.push(message),
  });
  const writer = testWriter(log.writer, alice);
  await writer.append(500);
  const abort = new AbortController();
  const read = (events: AsyncIterable<RecordedEvent>, pace?: () => Promise<unknown>) => {
    const seen: number[] = [];
    const done = (async () => {
      for await (const { offset } of events) {
        seen.push(sequenceOf(offset));
        await pace?.();
      }
    })();
    return { seen, done };
  };
  const follow = () => log.reader.follow({ afterOffset: logStart, subjects: [] }, { signal: abort.signal });
  const closed = Promise.withResolvers<void>();
  const live = read(follow());
  const inHistory = read(follow(), () => closed.promise);
  await until(() => live.seen.length === 500 && inHistory.seen.length === 1, { message: "both to be on their way" });

  await server.kill();
  closed.resolve();
  const late = read(follow());
  await delay(awayMs); // the subject of this test
  expect(late.seen).toEqual([]);
  await server.restart();

  await until(() => log.writer.lastOf(alice), { message: "the log to answer again" });
  await writer.append(100);
  const all = Array.from({ length: 600 }, (_, i) => i + 1);
  const back = { message: "all to have gone on", deadlineMs: promisedMs };
  await until(() => [live, inHistory, late].every(({ seen }) => seen.length >= 600), back);
  abort.abort();
  for (const { seen, done } of [live, inHistory, late]) {
    await done;
    expect(seen).toEqual(all);
  }
  expect(warnings.length).toBeLessThan(60);
  await nc.close();
});
