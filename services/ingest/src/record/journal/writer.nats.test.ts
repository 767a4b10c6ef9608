import { type Log, openLog } from "@tapedeck/shared/log/jetstream";
import type { RecordedEvent } from "@tapedeck/shared/log/log";
import { sourceFilter } from "@tapedeck/shared/log/subjects";
import { type SourceName, sourceName } from "@tapedeck/shared/source";
import { testMessage } from "@tapedeck/shared/testing/log-messages";
import { lossyProxy } from "@tapedeck/shared/testing/lossy-proxy";
import { startTestNats } from "@tapedeck/shared/testing/nats";
import { until } from "@tapedeck/shared/testing/until";
import { connect, type NatsConnection } from "nats";
import { expect, test } from "vitest";
import { LostRaceError, openWriter } from "./writer.ts";

const source = sourceName({ workspace: "acme", developer: "alice", project: "shop", upstream: "skaffold" });
const retry = { first: 5, most: 100 };

const client = (port: number) =>
  connect({ servers: `127.0.0.1:${port}`, maxReconnectAttempts: -1, reconnectTimeWait: 20, reconnectJitter: 0 });

async function recorded(log: Log, source: SourceName): Promise<RecordedEvent[]> {
  const subjects = [sourceFilter(source)];
  const last = await log.reader.lastMatch(subjects);
  const all: RecordedEvent[] = [];
  for await (const one of log.reader.history({ afterSeq: 0, subjects }, last, AbortSignal.timeout(60_000)))
    all.push(one);
  return all;
}

const ordinals = (all: readonly RecordedEvent[]) => all.map(({ event }) => Number(event.ordinal));
const upTo = (count: number) => Array.from({ length: count }, (_, i) => i + 1);

const open = async (nc: NatsConnection, timeoutMs = 60_000) => openLog(nc, { syncKnown: true, timeoutMs });

test("an answer that is lost is found in the log", async () => {
  await using nats = await startTestNats();
  await using proxy = await lossyProxy(nats.port);
  const direct = await client(nats.port);
  const nc = await client(proxy.port);
  // It gives up soon what is never answered.
  await using log = await open(nc, 300);
  await using truth = await open(direct);
  const troubles: string[] = [];
  await using writer = openWriter({
    log: log.writer,
    source,
    writer: "W",
    afterSeq: 0,
    retry,
    onTrouble: ({ outcome }) => troubles.push(outcome),
  });
  await writer.reached(writer.append([testMessage(source, 1)]));

  proxy.deaf = true;
  const last = writer.append([2, 3, 4, 5].map((ordinal) => testMessage(source, ordinal)));
  await until(async () => (await recorded(truth, source)).length === 5, { message: "the batch to land" });
  await until(() => troubles.length > 0, { message: "the writer to give up waiting" });
  proxy.deaf = false;
  proxy.cut(); // a connection that lost bytes is of no use

  await writer.reached(last);
  await writer.reached(writer.append([testMessage(source, 6)]));
  expect(ordinals(await recorded(truth, source))).toEqual(upTo(6));
  await Promise.all([nc.close(), direct.close()]);
});

test("a second writer wins once, and the first stops", async () => {
  await using nats = await startTestNats();
  const nc = await client(nats.port);
  await using log = await open(nc);
  await using first = openWriter({ log: log.writer, source, writer: "A", afterSeq: 0, retry });
  await first.reached(first.append([testMessage(source, 1), testMessage(source, 2)]));

  const last = await log.writer.lastOf(source);
  await using second = openWriter({ log: log.writer, source, writer: "B", afterSeq: last?.seq ?? 0, retry });
  await second.reached(second.append([testMessage(source, 3)]));
  first.append([testMessage(source, 3)]);

  expect(await first.ended).toBeInstanceOf(LostRaceError);
  expect(ordinals(await recorded(log, source))).toEqual(upTo(3));
  await nc.close();
});
