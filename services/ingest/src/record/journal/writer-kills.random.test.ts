import { type Log, openLog } from "@tapedeck/shared/log/jetstream";
import type { RecordedEvent } from "@tapedeck/shared/log/log";
import { sourceFilter } from "@tapedeck/shared/log/subjects";
import { type SourceName, sourceName } from "@tapedeck/shared/source";
import { testMessage } from "@tapedeck/shared/testing/log-messages";
import { lossyProxy } from "@tapedeck/shared/testing/lossy-proxy";
import { startTestNats } from "@tapedeck/shared/testing/nats";
import { searched } from "@tapedeck/shared/testing/searches";
import { until } from "@tapedeck/shared/testing/until";
import { connect, type NatsConnection } from "nats";
import { expect, test } from "vitest";
import { openWriter } from "./writer.ts";

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

const open = async (nc: NatsConnection) => openLog(nc, { syncKnown: true, timeoutMs: 300 });

test("kills of the server and lost answers at random moments lose nothing and repeat nothing", async () => {
  await using nats = await startTestNats();
  await using proxy = await lossyProxy(nats.port);
  const nc = await client(proxy.port);
  await using log = await open(nc);
  let troubles = 0;
  const onTrouble = () => void troubles++;
  await using writer = openWriter({ log: log.writer, source, writer: "W", afterSeq: 0, retry, onTrouble });

  let next = 1;
  const append = (count: number) => {
    for (const end = next + count; next < end; next++) writer.append([testMessage(source, next)]);
  };
  for (let round = 0; round < searched({ short: 6, long: 100 }); round++) {
    const before = writer.acknowledged;
    const troubled = troubles;
    append(1 + ((round * 37) % 90));
    if (round % 3 === 0) {
      await nats.kill();
      append(5);
      await nats.restart();
    } else if (round % 3 === 1) {
      proxy.deaf = true;
      append(5);
      await until(() => troubles > troubled, { message: "an answer to be missed" });
      proxy.deaf = false;
      proxy.cut();
    } else {
      proxy.cut();
    }
    await until(() => writer.acknowledged > before, { message: "something to be acknowledged again" });
  }
  await writer.reached(next - 1);
  const direct = await client(nats.port);
  await using truth = await openLog(direct, { syncKnown: true, timeoutMs: 60_000 });
  expect(ordinals(await recorded(truth, source))).toEqual(upTo(next - 1));
  await direct.close();
  await nc.close();
});
