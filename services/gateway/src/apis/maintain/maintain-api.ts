import type { AuditEntry } from "@tapedeck/shared/audit/entry";
import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { backUpLog, type Snapshot } from "@tapedeck/shared/log/backup";
import { justBefore, sequenceOf } from "@tapedeck/shared/log/offset";
import { parsePosition } from "@tapedeck/shared/log/position";
import { backupOf, openTokenStore, type TokenBackup } from "@tapedeck/shared/tokens/store";
import type { NatsConnection } from "nats";
import type { CallContext, Caller } from "../../call-context.ts";
import type { MaintainClient } from "../../maintain-client.ts";
import type { QueryClient } from "../../query-client.ts";
import { assertEverywhere } from "./everywhere.ts";
import { pieces } from "./pieces.ts";

/** Maintenance by admins. Everything throws TapedeckError. */
export type MaintainApi = {
  /** Removes a session of the caller's workspace for good; yields how much is to be removed, and how much is gone. */
  erase(session: string, context: CallContext): Promise<AsyncIterable<EraseProgress>>;
  /**
   * Rebuilds the tables of all workspaces; yields the progress. `fresh`: does not continue an earlier rebuild, which may
   * have what was removed from the log since.
   */
  rebuild(context: CallContext, how?: { readonly fresh: boolean }): Promise<AsyncIterable<RebuildProgress>>;
  /** The log of all workspaces up to a moment, and at the end the data that restores it, with the tokens. */
  backUp(context: CallContext): Promise<AsyncIterable<BackupPart>>;
};

export type EraseProgress = { readonly source: string; readonly events: number; readonly removed: number };
export type RebuildProgress = { readonly events: number; readonly done: number };
export type BackupPart =
  | { readonly type: "piece"; readonly bytes: Uint8Array }
  | { readonly type: "end"; readonly snapshot: Snapshot; readonly tokens: TokenBackup };

export type MaintainDeps = {
  readonly query: Pick<QueryClient, "listSessions">;
  readonly services: MaintainClient;
  /** The connection to NATS. @throws TapedeckError not_ready */
  readonly nats: () => { readonly connection: NatsConnection };
  readonly audit: (
    what: "session erased" | "tables rebuilt" | "log backed up",
    by: Caller,
    about: AuditEntry["about"],
  ) => void;
};

/** How many of each task may run at once. */
const most = { erase: 4, rebuild: 1, backUp: 1 } as const;

export function maintainApi({ query, services, nats, audit }: MaintainDeps): MaintainApi {
  const running = { erase: 0, rebuild: 0, backUp: 0 };

  /** Counts the task while it is read. */
  async function* counted<T>(what: keyof typeof most, items: AsyncIterable<T>): AsyncGenerator<T, void> {
    try {
      yield* items;
    } finally {
      running[what]--;
    }
  }

  function begin<T>(what: keyof typeof most, items: AsyncIterable<T>): AsyncIterable<T> {
    if (running[what] >= most[what]) {
      throw new TapedeckError("limit_exceeded", "this is already running: wait for its end", {}, { retryAfter: 10 });
    }
    running[what]++;
    return counted(what, items);
  }

  return {
    async erase(session, context) {
      const { workspace, signal } = context;
      const { items } = await query.listSessions({ workspace, sessions: [session], limit: 1 });
      const [found] = items;
      if (found === undefined) throw new TapedeckError("unknown_session", `there is no session "${session}"`);
      const { source } = found;
      const start = parsePosition(found.start_position);
      const afterSeq = start === undefined ? 0 : sequenceOf(justBefore(start.offset));
      const progress = async function* () {
        let removed = 0;
        try {
          for await (const one of services.erase({ source, session, afterSeq }, signal)) {
            removed = Number(one.removed);
            yield { source, events: Number(one.events), removed };
          }
        } finally {
          if (removed > 0) audit("session erased", context, { source, session, events: removed });
        }
      };
      return begin("erase", progress());
    },

    async rebuild(context, { fresh } = { fresh: false }) {
      assertEverywhere(context);
      const progress = async function* () {
        audit("tables rebuilt", context, {});
        for await (const { first, last, reached, events } of services.rebuild({ fresh }, context.signal)) {
          // The sequences of erased events are empty: the part of the sequences stands for the part of the events.
          const [sequences, done] = [Number(last - first) + 1, Number(reached - first) + 1];
          const part = sequences === 0 ? 1 : Math.max(0, Math.min(1, done / sequences));
          yield { events: Number(events), done: Math.floor(Number(events) * part) };
        }
      };
      return begin("rebuild", progress());
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
      return begin("backUp", parts());
    },
  };
}
