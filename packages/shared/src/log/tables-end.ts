import type { NatsConnection } from "nats";
import { z } from "zod";
import { asciiName, nameOfAscii } from "../source.ts";
import { delay } from "../sync/delay.ts";
import { startTimer, stopTimer, type Timer } from "../sync/timers.ts";
import type { Sequence } from "./offset.ts";
import { defaultQuery } from "./queries/query-map.ts";
import { endSubjects } from "./subjects.ts";

/** The end of a workspace's tables: its log had everything up to this message. */
export type TablesEnd = { readonly epoch: string; readonly seq: Sequence };

/** How far query's tables have come, as query reports it. */
export const tablesEndSchema = z.object({ epoch: z.string(), seq: z.number() });

/** A request that the query answers whose name it has, for a workspace; it is not stored. */
const requestSubject = (workspace: string) => `tapedeck.tables.${asciiName(workspace)}.end`;
const workspaceOf = (subject: string) => nameOfAscii(subject.split(".")[2] ?? "");
const retryMs = 100;

/** The ends of the tables of the workspaces that are projected, by workspace. */
export type TablesEnds = ReadonlyMap<string, TablesEnd>;

export type ReportTablesEnds = {
  /** How long a change waits for others. Default: a second. */
  readonly gatherMs?: number;
  /** The name of this query in the map; see query-map.ts. */
  readonly query?: string;
  /** Whether it answers for the workspace: only then its end is stored. By default it does. */
  readonly isOwn?: (workspace: string) => boolean;
};

export type TablesEndsReport = Disposable & {
  /** An end, or the answer of `isOwn`, may have changed. */
  changed(): void;
};

/**
 * Reports to ingest how far query's tables of each workspace have come, until it is disposed of: on request, and what has
 * changed soon after `changed` was called. Without a call no timer runs.
 */
export function reportTablesEnds(
  nats: NatsConnection,
  now: () => TablesEnds,
  { gatherMs = 1_000, query = defaultQuery, isOwn = () => true }: ReportTablesEnds = {},
): TablesEndsReport {
  const published = new Map<string, TablesEnd>();
  let timer: Timer | undefined;
  const write = () => {
    stopTimer(timer);
    timer = undefined;
    if (nats.isClosed()) return;
    for (const [workspace, end] of now()) {
      const before = published.get(workspace);
      if ((end.seq === before?.seq && end.epoch === before.epoch) || !isOwn(workspace)) continue;
      nats.publish(endSubjects(workspace).tables, JSON.stringify(end));
      published.set(workspace, end);
    }
  };
  write();
  const requests = nats.subscribe(requestSubject("*"), {
    callback: (error, message) => {
      if (error !== null || message.string() !== query) return;
      const end = now().get(workspaceOf(message.subject));
      if (end !== undefined) message.respond(JSON.stringify(end));
    },
  });
  return {
    changed() {
      timer ??= startTimer(write, gatherMs).unref();
    },
    [Symbol.dispose]: () => {
      write();
      if (!nats.isClosed()) requests.unsubscribe();
    },
  };
}

/** A query's answer for a workspace; undefined if none comes within the time, or the signal aborts. */
export async function requestTablesEnd(
  nats: NatsConnection,
  workspace: string,
  waitMs: number,
  { query = defaultQuery, signal }: { readonly query?: string; readonly signal?: AbortSignal } = {},
): Promise<TablesEnd | undefined> {
  const end = performance.now() + waitMs;
  while (signal?.aborted !== true && performance.now() < end) {
    try {
      const timeout = Math.max(1, end - performance.now());
      const { data } = await nats.request(requestSubject(workspace), query, { timeout });
      return tablesEndSchema.parse(JSON.parse(new TextDecoder().decode(data)));
    } catch {
      await delay(retryMs, signal);
    }
  }
  return undefined;
}
