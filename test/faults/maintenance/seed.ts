import { openLog } from "@tapedeck/shared/log/jetstream";
import { type SourceName, sourceName } from "@tapedeck/shared/source";
import { newEvent, testWriter } from "@tapedeck/shared/testing/log-messages";
import { until } from "@tapedeck/shared/testing/until";
import { connect } from "nats";
import type { Processes } from "../processes.ts";

const source = sourceName({ workspace: "default", developer: "kim", project: "shop", upstream: "skaffold" });

/** Writes a session that is over, of so many events, and waits until query has it. */
export async function seedSession(on: Processes, session: string, events: number, perMessage: number): Promise<void> {
  await using log = await openedLog(on);
  const writer = testWriter(log.writer, source, { perMessage });
  const own = { session, channel: "tapedeck" };
  await writer.append(1, { ...own, kind: "session.started" });
  await writer.append(events - 2, { session, kind: "build.started", summary: "hush" });
  await writer.append(1, { ...own, kind: "session.ended" });
  const isThere = async () =>
    (await (await fetch(`http://${on.http}/api/v1/sessions`)).text()).includes(session) || undefined;
  await until(isThere, { message: "query to have the session" });
}

/** Writes messages of text that expire together. */
export async function seedText(on: Processes, messages: number, ttlSeconds: number): Promise<void> {
  const other: SourceName = sourceName({
    workspace: "default",
    developer: "lee",
    project: "shop",
    upstream: "skaffold",
  });
  await using log = await openedLog(on);
  let seq = 0;
  for (let ordinal = 1; ordinal <= messages; ordinal++) {
    const text = { ...newEvent(other, ordinal, { kind: "log.written", summary: "x".repeat(500) }), ttlSeconds };
    const published = await log.writer.publish(other, "w1", [text], seq);
    if (published.outcome !== "acknowledged") throw new Error(`a publish was ${published.outcome}`);
    seq = published.seq;
  }
}

async function openedLog({ nats }: Processes) {
  const nc = await connect({ servers: nats });
  const log = await openLog(nc, { syncKnown: true, timeoutMs: 20_000 });
  return {
    writer: log.writer,
    [Symbol.asyncDispose]: async () => {
      await log[Symbol.asyncDispose]();
      await nc.close();
    },
  };
}
