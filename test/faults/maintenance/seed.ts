import { openLog } from "@tapedeck/shared/log/jetstream";
import { type SourceName, sourceName } from "@tapedeck/shared/source";
import { newEvent } from "@tapedeck/shared/testing/log-messages";
import { until } from "@tapedeck/shared/testing/until";
import { connect } from "nats";
import { ulid } from "ulid";
import type { Processes } from "../processes.ts";

/** Writes a session of a source of its own that is over, of so many events, and waits until query has it. */
export async function seedSession(on: Processes, session: string, events: number, perMessage: number): Promise<void> {
  const project = `of-${session.toLowerCase()}`;
  const source = sourceName({ workspace: "default", developer: "kim", project, upstream: "skaffold" });
  await using log = await openedLog(on);
  // The check for damage reads the cursors, so they count as recorders do.
  const numbered = (channel: string, kind: string, ordinals: { readonly tapedeck: number; readonly v1: number }) => {
    const ordinal = channel === "v1" ? ordinals.v1 : ordinals.tapedeck;
    const event = newEvent(source, ordinal, { session, channel, kind, summary: "hush" });
    return { ...event, cursor: { session, ordinals, frames: {} } };
  };
  const all = [
    numbered("tapedeck", "session.started", { tapedeck: 1, v1: 0 }),
    ...Array.from({ length: events - 2 }, (_, at) => numbered("v1", "build.started", { tapedeck: 1, v1: at + 1 })),
    numbered("tapedeck", "session.ended", { tapedeck: 2, v1: events - 2 }),
  ];
  let seq = 0;
  for (let at = 0; at < all.length; ) {
    const isOwn = at === 0 || at === all.length - 1;
    const end = isOwn ? at + 1 : Math.min(at + perMessage, all.length - 1);
    const published = await log.writer.publish(source, "w1", all.slice(at, end), seq);
    if (published.outcome !== "acknowledged") throw new Error(`a publish was ${published.outcome}`);
    seq = published.seq;
    at = end;
  }
  const isThere = async () =>
    (await (await fetch(`http://${on.http}/api/v1/sessions`)).text()).includes(session) || undefined;
  await until(isThere, { message: "query to have the session" });
}

/** Writes messages of text that expire together, of several sources beside each other. */
export async function seedText(on: Processes, messages: number, ttlSeconds: number): Promise<void> {
  const sources = ["lee", "max", "noa", "pat"].map((developer) =>
    sourceName({ ...shop, workspace: "default", developer }),
  );
  const each = { messages: messages / sources.length, ttlSeconds };
  await Promise.all(sources.map((source) => seedMessages(on, source, each)));
}

const shop = { project: "shop", upstream: "skaffold" } as const;

async function seedMessages(
  on: Processes,
  source: SourceName,
  { messages, ttlSeconds }: { readonly messages: number; readonly ttlSeconds?: number },
): Promise<void> {
  await using log = await openedLog(on);
  const session = ulid();
  let seq = (await log.writer.lastOf(source))?.seq ?? 0;
  for (let ordinal = 1; ordinal <= messages; ordinal++) {
    const text = newEvent(source, ordinal, { session, kind: "log.written", summary: "x".repeat(500) });
    const published = await log.writer.publish(source, "w1", [ttlSeconds ? { ...text, ttlSeconds } : text], seq);
    if (published.outcome !== "acknowledged") throw new Error(`a publish was ${published.outcome}`);
    seq = published.seq;
  }
}

async function openedLog({ nats }: Processes) {
  const nc = await connect({ servers: nats });
  const log = await openLog(nc, { workspace: "default", syncKnown: true, timeoutMs: 20_000 });
  return {
    writer: log.writer,
    [Symbol.asyncDispose]: async () => {
      await log[Symbol.asyncDispose]();
      await nc.close();
    },
  };
}
