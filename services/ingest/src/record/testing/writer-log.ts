import { type Log, openLog } from "@tapedeck/shared/log/jetstream";
import type { RecordedEvent } from "@tapedeck/shared/log/log";
import { logStart } from "@tapedeck/shared/log/offset";
import { sourceFilter } from "@tapedeck/shared/log/subjects";
import { sourceName } from "@tapedeck/shared/source";
import { connectThroughRestarts } from "@tapedeck/shared/testing/nats-connection";
import type { NatsConnection } from "nats";

// A writer's source and log on a real NATS server, for tests.

export const source = sourceName({ workspace: "acme", developer: "alice", project: "shop", upstream: "skaffold" });
/** Short, so that a test soon sees the next attempt. */
export const retry = { first: 5, max: 100 };

export function connectTo(port: number): Promise<NatsConnection> {
  return connectThroughRestarts(`127.0.0.1:${port}`);
}

/** A short timeout makes a writer give up soon what is never answered. */
export function openTestLog(nc: NatsConnection, timeoutMs = 60_000): Promise<Log> {
  return openLog(nc, { workspace: "acme", syncKnown: true, timeoutMs });
}

/** The ordinals of the source's events, in the order of the log. */
export async function recordedOrdinals({ reader }: Log): Promise<readonly number[]> {
  const subjects = [sourceFilter(source)];
  const last = await reader.lastMatch(subjects);
  const all: RecordedEvent[] = [];
  for await (const one of reader.history({ afterOffset: logStart, subjects }, last, AbortSignal.timeout(60_000)))
    all.push(one);
  return all.map(({ event }) => Number(event.ordinal));
}

export const upTo = (count: number) => Array.from({ length: count }, (_, i) => i + 1);
