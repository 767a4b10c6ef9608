import type { LogReader } from "@tapedeck/shared/log/log";
import { logStart, sequenceOf } from "@tapedeck/shared/log/offset";
import { parsePosition } from "@tapedeck/shared/log/position";
import { timeoutSignal } from "@tapedeck/shared/sync/timers";
import type { Caller } from "../../call-context.ts";
import type { MaintainClient } from "../../maintain-client.ts";
import type { QueryClient } from "../../query-client.ts";
import type { AnswerOf } from "./answers.ts";
import { timeJson } from "./lists.ts";

export type StatusDeps = {
  readonly query: Pick<QueryClient, "position" | "setAside">;
  readonly log: LogReader;
  readonly services: Pick<MaintainClient, "waiting">;
};

type Asking = Pick<Caller, "workspace" | "roles" | "everywhere">;

/**
 * How far the tables are behind the log, how large that is and how it grows, what waits to be recorded, and what the tables could
 * not take: questions that cost next to nothing.
 */
export async function statusOf({ query, log, services }: StatusDeps, caller: Asking): Promise<AnswerOf<"Status">> {
  const { roles, everywhere } = caller;
  // The log's size reveals how much all workspaces record.
  const seesAll = roles === undefined || everywhere === true;
  const [{ position, log_position }, { sources }, size, waiting] = await Promise.all([
    query.position(caller.workspace),
    query.setAside(seesAll ? "" : caller.workspace),
    seesAll ? sizeOf(log) : null,
    waitingFor(services, caller),
  ]);
  const [behind, end] = [position, log_position].map((text) => sequenceOf(parsePosition(text)?.offset ?? logStart));
  return {
    position,
    logPosition: log_position,
    behindMessages: Math.max(0, (end ?? 0) - (behind ?? 0)),
    log: size,
    waiting,
    setAside: sources.map(({ source, events, first_position, last_position, last_at, error_code, error }) => ({
      source,
      events: Number(events),
      firstPosition: first_position,
      lastPosition: last_position,
      lastAt: timeJson(last_at) ?? "",
      errorCode: error_code,
      error,
    })),
  };
}

const dayMs = 86_400_000;

/** Bytes are known of the whole log alone, so those of a day are as many as its messages have on average. */
async function sizeOf(log: LogReader): Promise<NonNullable<AnswerOf<"Status">["log"]>> {
  const [{ messages, bytes, lastOffset }, first] = await Promise.all([
    log.bounds(),
    log.firstSince(new Date(Date.now() - dayMs)),
  ]);
  // Some may have been erased, or have expired.
  const since = first === undefined ? 0 : Math.min(messages, sequenceOf(lastOffset) - sequenceOf(first) + 1);
  const share = messages === 0 ? 0 : since / messages;
  return {
    messages,
    bytes,
    lastDay: { messages: since, bytes: Math.round(bytes * share) },
  };
}

const timeoutMs = 2_000;

/** Null where ingest does not answer soon: the rest is known without it. */
async function waitingFor(
  { waiting }: StatusDeps["services"],
  { workspace, roles, everywhere }: Asking,
): Promise<AnswerOf<"Status">["waiting"]> {
  const signal = timeoutSignal(timeoutMs);
  try {
    const found = await Array.fromAsync(waiting(signal));
    if (signal.aborted) return null;
    const isSeen = (source: string) => roles === undefined || everywhere === true || source.startsWith(`${workspace}/`);
    return found
      .filter(({ source }) => isSeen(source))
      .map(({ source, items, bytes, dropped }) => ({
        source,
        items: Number(items),
        bytes: Number(bytes),
        dropped: Number(dropped),
      }));
  } catch {
    return null;
  }
}
