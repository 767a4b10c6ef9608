import type { NatsConnection } from "nats";
import { z } from "zod";
import { pause } from "../sync/delay.ts";
import { tablesEndSubject } from "./subjects.ts";

/** How far the tables have come: all up to there was in the log. */
export type TablesEnd = { readonly epoch: string; readonly seq: number };

export const tablesEndSchema = z.object({ epoch: z.string(), seq: z.number() });

/** A question that query answers; it is not stored. */
const question = "tapedeck.tables.end";
const againMs = 100;

/**
 * Tells ingest how far query's tables have come, until it is disposed of: when asked, and, beside the log, at most every
 * so often when it has changed.
 */
export function tellTablesEnd(nats: NatsConnection, now: () => TablesEnd, everyMs = 1_000): Disposable {
  const encoded = () => JSON.stringify(now());
  let told = "";
  const write = () => {
    const end = encoded();
    if (end === told || nats.isClosed()) return;
    nats.publish(tablesEndSubject, end);
    told = end;
  };
  write();
  const timer = setInterval(write, everyMs).unref();
  const asked = nats.subscribe(question, {
    callback: (error, message) => {
      if (error === null) message.respond(encoded());
    },
  });
  return {
    [Symbol.dispose]: () => {
      clearInterval(timer);
      if (nats.isClosed()) return;
      write();
      asked.unsubscribe();
    },
  };
}

/** What query says; undefined when none answers within the time, or the signal aborts. */
export async function askTablesEnd(
  nats: NatsConnection,
  waitMs: number,
  signal?: AbortSignal,
): Promise<TablesEnd | undefined> {
  const end = performance.now() + waitMs;
  while (signal?.aborted !== true && performance.now() < end) {
    try {
      const { data } = await nats.request(question, "", { timeout: Math.max(1, end - performance.now()) });
      return tablesEndSchema.parse(JSON.parse(new TextDecoder().decode(data)));
    } catch {
      await pause(againMs, signal);
    }
  }
  return undefined;
}
