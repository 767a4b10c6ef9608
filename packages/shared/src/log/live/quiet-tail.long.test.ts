import { expect, it } from "vitest";
import type { SourceName } from "../../source.ts";
import { testWriter } from "../../testing/log-messages.ts";
import { startTestLog, testSources, testStream } from "../../testing/test-log.ts";
import { until } from "../../testing/until.ts";
import { logStart, offsetOf } from "../offset.ts";

const [alice] = testSources as [SourceName];

it("a tail to which nothing comes hears from the server rarely, and from the next event on often", async () => {
  await using log = await startTestLog();
  const heartbeats: number[] = [];
  log.nc.subscribe(`$JS.API.CONSUMER.MSG.NEXT.${testStream}.>`, {
    callback: (_error, message) => {
      const { idle_heartbeat = 0 } = message.json<{ idle_heartbeat?: number }>();
      if (idle_heartbeat > 0) heartbeats.push(idle_heartbeat / 1_000_000);
    },
  });
  const over = new AbortController();
  const events = log.reader.follow({ afterOffset: logStart, subjects: [] }, over);
  const writer = testWriter(log.writer, alice);
  await writer.append(1);
  expect((await events.next()).value?.offset).toBe(offsetOf(1));
  await until(() => heartbeats.at(-1) === 10_000, { message: "a pull that brings nothing to end" });
  expect(heartbeats[0]).toBe(500);
  const next = events.next();
  await writer.append(1);
  expect((await next).value?.offset).toBe(offsetOf(2));
  await until(() => heartbeats.at(-1) === 500, { message: "the pull of that event to end" });
  over.abort();
});
