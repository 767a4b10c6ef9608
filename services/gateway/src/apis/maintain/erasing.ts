import { type SessionExport, sessionExports } from "@tapedeck/shared/audit/session-exports";
import type { AuditStore } from "@tapedeck/shared/audit/store";
import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { justBefore, sequenceOf } from "@tapedeck/shared/log/offset";
import { parsePosition } from "@tapedeck/shared/log/position";
import { backoff, delay } from "@tapedeck/shared/sync/delay";
import type { CallContext } from "../../call-context.ts";
import type { MaintainClient } from "../../maintain-client.ts";
import type { QueryClient } from "../../query-client.ts";

export type ErasureDeps = {
  readonly query: Pick<QueryClient, "listSessions">;
  readonly services: MaintainClient;
  readonly auditStore: () => Promise<Pick<AuditStore, "read">>;
};

export type EraseProgress = {
  readonly source: string;
  readonly state: "removing" | "done";
  /** Undefined until they are counted. */
  readonly events: number | undefined;
  readonly removed: number;
  /** At its end: who has taken the session away before. Undefined also where the audit log can't be read. */
  readonly exports?: readonly SessionExport[] | undefined;
};

/** How long a caller waits for the tables to forget a session. */
const forgetMs = 5_000;

type Sessions = Pick<QueryClient, "listSessions">;

/** Undefined also while query is away: then ingest looks for it in the log. */
async function sessionIn({ listSessions }: Sessions, workspace: string, session: string) {
  const answer = await listSessions({ workspace, sessions: [session], limit: 1 }).catch((error: unknown) => {
    if (error instanceof TapedeckError && error.code === "not_ready") return undefined;
    throw error;
  });
  return answer?.items[0];
}

/** Resolves when the tables no longer have the session, or after a while. */
async function forgottenBy(
  query: Sessions,
  {
    workspace,
    session,
    signal,
  }: { readonly workspace: string; readonly session: string; readonly signal: AbortSignal },
): Promise<void> {
  const end = performance.now() + forgetMs;
  const retry = backoff(10, 500);
  while (!signal.aborted && performance.now() < end) {
    if ((await sessionIn(query, workspace, session)) === undefined) return;
    await delay(retry.next(), signal);
  }
}

/** Files that were exported from a session remain where they are. */
async function exportsOf({ auditStore }: ErasureDeps, workspace: string, session: string) {
  try {
    return await sessionExports(await auditStore(), { workspace, session });
  } catch {
    return undefined;
  }
}

/** Starts the erasure, and yields its progress once the session can't be read any more. */
export async function beginErasure(
  deps: ErasureDeps,
  session: string,
  { workspace, who, kind, token = "", signal }: CallContext,
): Promise<AsyncIterable<EraseProgress>> {
  const { query, services } = deps;
  const found = await sessionIn(query, workspace, session);
  const start = parsePosition(found?.start_position ?? "");
  const after_sequence = BigInt(start === undefined ? 0 : sequenceOf(justBefore(start.offset)));
  const request = { source: found?.source ?? "", session, after_sequence, workspace, who, kind, by: token };
  const responses = services.erase(request, signal)[Symbol.asyncIterator]();
  const first = await responses.next();
  if (first.done !== true) await forgottenBy(query, { workspace, session, signal });
  return (async function* (): AsyncGenerator<EraseProgress, void> {
    try {
      for (let next = first; next.done !== true; next = await responses.next()) {
        const { source, state, events, removed } = next.value;
        const far = { source, events: events === undefined ? undefined : Number(events), removed: Number(removed) };
        if (state !== "done") yield { ...far, state: "removing" };
        else yield { ...far, state: "done", exports: await exportsOf(deps, workspace, session) };
      }
    } finally {
      await responses.return?.();
    }
  })();
}
