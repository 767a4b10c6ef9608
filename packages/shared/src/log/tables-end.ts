import type { NatsConnection } from "nats";
import { z } from "zod";
import { delay } from "../sync/delay.ts";
import { startInterval, stopTimer } from "../sync/timers.ts";
import type { Sequence } from "./offset.ts";
import { tablesEndSubject } from "./subjects.ts";

/** The end of the tables, of one workspace or of the one that is farthest: the log had everything up to this message. */
export type TablesEnd = { readonly epoch: string; readonly seq: Sequence };

/** How far query's tables have come, as query reports it. */
export const tablesEndSchema = z.object({ epoch: z.string(), seq: z.number() });

/** A request that query answers; it is not stored. Its text is the workspace; empty: the farthest one. */
const requestSubject = "tapedeck.tables.end";
const retryMs = 100;

/**
 * Reports to ingest how far query's tables have come, until it is disposed of: on request, and at most every `everyMs`
 * when it has changed.
 */
export function reportTablesEnd(
  nats: NatsConnection,
  now: (workspace?: string) => TablesEnd,
  everyMs = 1_000,
): Disposable {
  const encoded = (workspace?: string) => JSON.stringify(now(workspace));
  let published = "";
  const write = () => {
    const end = encoded();
    if (end === published || nats.isClosed()) return;
    nats.publish(tablesEndSubject, end);
    published = end;
  };
  write();
  const timer = startInterval(write, everyMs).unref();
  const requests = nats.subscribe(requestSubject, {
    callback: (error, message) => {
      if (error === null) message.respond(encoded(message.string() || undefined));
    },
  });
  return {
    [Symbol.dispose]: () => {
      stopTimer(timer);
      if (nats.isClosed()) return;
      write();
      requests.unsubscribe();
    },
  };
}

/** Query's answer; undefined if none comes within the time, or the signal aborts. */
export async function requestTablesEnd(
  nats: NatsConnection,
  waitMs: number,
  { workspace = "", signal }: { readonly workspace?: string; readonly signal?: AbortSignal } = {},
): Promise<TablesEnd | undefined> {
  const end = performance.now() + waitMs;
  while (signal?.aborted !== true && performance.now() < end) {
    try {
      const { data } = await nats.request(requestSubject, workspace, { timeout: Math.max(1, end - performance.now()) });
      return tablesEndSchema.parse(JSON.parse(new TextDecoder().decode(data)));
    } catch {
      await delay(retryMs, signal);
    }
  }
  return undefined;
}
