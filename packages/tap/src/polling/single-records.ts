import type { Reply } from "../unary-call.ts";
import type { PolledConnection } from "./connection.ts";
import type { EmitResult } from "./poll-result.ts";

export type SingleRecords = {
  readonly connection: Pick<PolledConnection, "signal" | "call">;
  readonly path: string;
  readonly requestFor: (id: string) => Uint8Array;
  /** For all records together. */
  readonly timeoutMs: number;
  readonly emit: EmitResult;
};

export type SingleRecord = { readonly id: string; readonly reply: Reply; readonly tookMs: number };

/** One list may raise this many questions; the rest waits for the next list. */
const maxRequests = 50;

/** Requests records by their ids, one after the other, and emits each reply. Ends early when the time is up. */
export async function* requestSingleRecords(
  ids: readonly string[],
  { connection, path, requestFor, timeoutMs, emit }: SingleRecords,
): AsyncGenerator<SingleRecord, void> {
  const end = performance.now() + timeoutMs;
  for (const id of ids.slice(0, maxRequests)) {
    const requestedAt = performance.now();
    if (end <= requestedAt) return;
    const reply = await connection.call(path, requestFor(id), end - requestedAt);
    if (connection.signal.aborted) return;
    const { code, message, response } = reply;
    emit({ $case: "one", value: { id, bytes: response, code, message } });
    yield { id, reply, tookMs: performance.now() - requestedAt };
  }
}
