import { newEvent } from "@tapedeck/shared/testing/log-messages";
import { lossyProxy } from "@tapedeck/shared/testing/lossy-proxy";
import { startTestNats } from "@tapedeck/shared/testing/nats";
import { searched } from "@tapedeck/shared/testing/searches";
import { until } from "@tapedeck/shared/testing/until";
import { expect, it } from "vitest";
import { connectTo, openTestLog, recordedOrdinals, retry, source, upTo } from "../testing/writer-log.ts";
import { SourceWriter } from "./writer.ts";

it("kills of the server and lost answers at random moments lose nothing and repeat nothing", async () => {
  await using nats = await startTestNats();
  await using proxy = await lossyProxy(nats.port);
  const nc = await connectTo(proxy.port);
  await using log = await openTestLog(nc, 300);
  let failures = 0;
  const onPublishFailure = () => void failures++;
  await using writer = new SourceWriter({ log: log.writer, source, writer: "W", afterSeq: 0, retry, onPublishFailure });

  let next = 1;
  const append = (count: number) => {
    for (const end = next + count; next < end; next++) writer.append([newEvent(source, next)]);
  };
  for (let round = 0; round < searched({ short: 6, long: 100 }); round++) {
    const before = writer.acknowledged;
    const troubled = failures;
    append(1 + ((round * 37) % 90));
    if (round % 3 === 0) {
      await nats.kill();
      append(5);
      await nats.restart();
    } else if (round % 3 === 1) {
      proxy.deaf = true;
      append(5);
      await until(() => failures > troubled, { message: "an answer to be missed" });
      proxy.deaf = false;
      proxy.cut();
    } else {
      proxy.cut();
    }
    await until(() => writer.acknowledged > before, { message: "something to be acknowledged again" });
  }
  await writer.reached(next - 1);
  const direct = await connectTo(nats.port);
  await using truth = await openTestLog(direct);
  expect(await recordedOrdinals(truth)).toEqual(upTo(next - 1));
  await direct.close();
  await nc.close();
});
