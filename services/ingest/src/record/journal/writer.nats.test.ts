import { newEvent } from "@tapedeck/shared/testing/log-messages";
import { lossyProxy } from "@tapedeck/shared/testing/lossy-proxy";
import { startTestNats } from "@tapedeck/shared/testing/nats";
import { until } from "@tapedeck/shared/testing/until";
import { expect, it } from "vitest";
import { connectTo, openTestLog, recordedOrdinals, retry, source, upTo } from "../testing/writer-log.ts";
import { LostRaceError } from "./settle.ts";
import { SourceWriter } from "./writer.ts";

it("an answer that is lost is found in the log", async () => {
  await using nats = await startTestNats();
  await using proxy = await lossyProxy(nats.port);
  const direct = await connectTo(nats.port);
  const nc = await connectTo(proxy.port);
  // It gives up soon what is never answered.
  await using log = await openTestLog(nc, 300);
  await using truth = await openTestLog(direct);
  const failures: string[] = [];
  await using writer = new SourceWriter({
    log: log.writer,
    source,
    writer: "W",
    afterSeq: 0,
    retry,
    onPublishFailure: ({ outcome }) => failures.push(outcome),
  });
  await writer.reached(writer.append([newEvent(source, 1)]));

  proxy.deaf = true;
  const last = writer.append([2, 3, 4, 5].map((ordinal) => newEvent(source, ordinal)));
  await until(async () => (await recordedOrdinals(truth)).length === 5, { message: "the batch to land" });
  await until(() => failures.length > 0, { message: "the writer to give up waiting" });
  proxy.deaf = false;
  proxy.cut(); // a connection that lost bytes is of no use

  await writer.reached(last);
  await writer.reached(writer.append([newEvent(source, 6)]));
  expect(await recordedOrdinals(truth)).toEqual(upTo(6));
  await Promise.all([nc.close(), direct.close()]);
});

it("a second writer wins once, and the first stops", async () => {
  await using nats = await startTestNats();
  const nc = await connectTo(nats.port);
  await using log = await openTestLog(nc);
  await using first = new SourceWriter({ log: log.writer, source, writer: "A", afterSeq: 0, retry });
  await first.reached(first.append([newEvent(source, 1), newEvent(source, 2)]));

  const last = await log.writer.lastOf(source);
  await using second = new SourceWriter({ log: log.writer, source, writer: "B", afterSeq: last?.seq ?? 0, retry });
  await second.reached(second.append([newEvent(source, 3)]));
  first.append([newEvent(source, 3)]);

  expect(await first.ended).toBeInstanceOf(LostRaceError);
  expect(await recordedOrdinals(log)).toEqual(upTo(3));
  await nc.close();
});
