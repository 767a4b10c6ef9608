import type { AuditEntry } from "@tapedeck/shared/audit/entry";
import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { backUpLog, type Snapshot } from "@tapedeck/shared/log/backup";
import { justBefore, sequenceOf } from "@tapedeck/shared/log/offset";
import { parsePosition } from "@tapedeck/shared/log/position";
import { backoff, delay } from "@tapedeck/shared/sync/delay";
import { backupOf, openTokenStore, type TokenBackup } from "@tapedeck/shared/tokens/store";
import type { NatsConnection } from "nats";
import type { CallContext, Caller } from "../../call-context.ts";
import type { MaintainClient } from "../../maintain-client.ts";
import type { QueryClient } from "../../query-client.ts";
import { assertEverywhere } from "./everywhere.ts";
import { pieces } from "./pieces.ts";

/** Maintenance by admins. Everything throws TapedeckError. */
export type MaintainApi = {
  /**
   * Begins to remove a session of the caller's workspace for good, and yields how far that is until it is over. It goes on
   * when the caller leaves; the same call again finds it under way or done. Nothing of the session is readable any more, in the
   * log or in the tables, when this resolves, unless query is away: its tables follow when it is back.
   */
  erase(session: string, context: CallContext): Promise<AsyncIterable<EraseProgress>>;
  /**
   * Rebuilds the tables of all workspaces; yields the progress. `fresh`: does not continue an earlier rebuild, which may
   * have what was removed from the log since.
   */
  rebuild(context: CallContext, how?: { readonly fresh: boolean }): Promise<AsyncIterable<RebuildProgress>>;
  /** The log of all workspaces up to a moment, and at the end the data that restores it, with the tokens. */
  backUp(context: CallContext): Promise<AsyncIterable<BackupPart>>;
};

export type EraseProgress = {
  readonly source: string;
  readonly state: "removing" | "done";
  /** Undefined until they are counted. */
  readonly events: number | undefined;
  readonly removed: number;
};
export type RebuildProgress = {
  /** The log's messages when it began, and how many of them are in the new tables. A message holds one event or several. */
  readonly messages: number;
  readonly done: number;
  /** The events that this call has put into the new tables. */
  readonly events: number;
};
export type BackupPart =
  | { readonly type: "piece"; readonly bytes: Uint8Array }
  | { readonly type: "end"; readonly snapshot: Snapshot; readonly tokens: TokenBackup };

export type MaintainDeps = {
  readonly query: Pick<QueryClient, "listSessions">;
  readonly services: MaintainClient;
  /** The connection to NATS. @throws TapedeckError not_ready */
  readonly nats: () => { readonly connection: NatsConnection };
  readonly audit: (what: "tables rebuilt" | "log backed up", by: Caller, about: AuditEntry["about"]) => void;
};

/** How many of each task may run at once. */
const most = { erase: 4, rebuild: 1, backUp: 1 } as const;

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

export function maintainApi({ query, services, nats, audit }: MaintainDeps): MaintainApi {
  const running = { erase: 0, rebuild: 0, backUp: 0 };

  /** Takes one of the places of a task, before anything of it is done. The answer gives it back, once. */
  function place(what: keyof typeof most, signal: AbortSignal): () => void {
    if (running[what] >= most[what]) {
      throw new TapedeckError("limit_exceeded", "this is already running: wait for its end", {}, { retryAfter: 10 });
    }
    running[what]++;
    const left = new AbortController();
    const leave = () => {
      if (left.signal.aborted) return;
      left.abort();
      running[what]--;
    };
    // A caller who is gone may never read what was begun.
    signal.addEventListener("abort", leave, { once: true, signal: left.signal });
    return leave;
  }

  async function* inPlace<T>(items: AsyncIterable<T>, leave: () => void): AsyncGenerator<T, void> {
    try {
      yield* items;
    } finally {
      leave();
    }
  }

  function begin<T>(what: keyof typeof most, items: AsyncIterable<T>, signal: AbortSignal): AsyncIterable<T> {
    return inPlace(items, place(what, signal));
  }

  async function beginErasure(session: string, { workspace, who, kind, token = "", signal }: CallContext) {
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
          const count = events === undefined ? undefined : Number(events);
          yield { source, state: state === "done" ? "done" : "removing", events: count, removed: Number(removed) };
        }
      } finally {
        await responses.return?.();
      }
    })();
  }

  return {
    async erase(session, context) {
      const leave = place("erase", context.signal);
      try {
        return inPlace(await beginErasure(session, context), leave);
      } catch (error) {
        leave();
        throw error;
      }
    },

    async rebuild(context, { fresh } = { fresh: false }) {
      assertEverywhere(context);
      const progress = async function* () {
        audit("tables rebuilt", context, {});
        for await (const { first, last, reached, messages, events } of services.rebuild({ fresh }, context.signal)) {
          // The sequences of erased events are empty: the part of the sequences stands for the part of the events.
          const [sequences, done] = [Number(last - first) + 1, Number(reached - first) + 1];
          const part = sequences === 0 ? 1 : Math.max(0, Math.min(1, done / sequences));
          yield { messages: Number(messages), done: Math.floor(Number(messages) * part), events: Number(events) };
        }
      };
      return begin("rebuild", progress(), context.signal);
    },

    async backUp(context) {
      assertEverywhere(context);
      const { connection } = nats();
      const parts = async function* (): AsyncGenerator<BackupPart, void> {
        audit("log backed up", context, {});
        const made = pieces((take) => backUpLog(connection, take), context.signal);
        for await (const bytes of made.stream) yield { type: "piece", bytes };
        if (context.signal.aborted) return;
        const tokens = backupOf(await (await openTokenStore(connection)).read());
        yield { type: "end", snapshot: await made.result, tokens };
      };
      return begin("backUp", parts(), context.signal);
    },
  };
}
