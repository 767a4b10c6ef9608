import type { ReadStateRequest, ReadStateResponse } from "@tapedeck/proto/tapedeck/v1/query";
import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { formatPosition } from "@tapedeck/shared/log/position";
import type { SourceName } from "@tapedeck/shared/source";
import { sourceParts } from "@tapedeck/shared/source";
import { sql } from "kysely";
import type { Tx } from "../db/database.ts";
import { timestampOf } from "../db/moment.ts";
import { readConsistently } from "../db/read.ts";
import type { SessionRow, SourceRow } from "../db/schema.ts";
import { text } from "../db/text.ts";
import { collectionOf } from "./collections.ts";
import { currentSession } from "./current-session.ts";
import type { ApiDeps, CallScope } from "./deps.ts";
import { notProjected, reachAt, reachMinimum } from "./place.ts";
import { sourceAt } from "./source-at.ts";

/** The head, then the rows. */
export async function* readState(
  deps: ApiDeps,
  request: ReadStateRequest,
  { signal }: CallScope,
): AsyncGenerator<ReadStateResponse, void> {
  const collection = collectionOf(deps, request.collection);
  await reachMinimum(deps, request.min_position);
  const at = await reachAt(deps, request.at);
  const { position, epoch, source, session, ended, unheardSince, read } = await readConsistently(
    deps.database(),
    async (tx, checkpoint) => {
      if (checkpoint === undefined) throw notProjected();
      const { epoch } = checkpoint;
      const seq = at ?? checkpoint.position;
      const source = await sourceOf(tx, request, collection.upstream);
      assertBegun(source.first_position, seq, epoch, source.source);
      const session = await sessionOf(tx, request.session, source, seq);
      if (session !== undefined) assertBegun(session.start_position, seq, epoch, `session ${session.session}`);
      const { key_prefix } = request;
      const named = request.session !== "";
      const read = await collection.open(tx, { source, session, named, epoch, seq, key_prefix });
      return {
        position: formatPosition({ epoch, seq }),
        epoch,
        source,
        session,
        ended: await hadEnded(tx, session, at),
        unheardSince: await notHeardSince(tx, source, session, seq, at),
        read,
      };
    },
  );

  const items = await read(signal);
  const head = {
    ...{ position, source: source.source, session: session?.session ?? "", session_ended: ended },
    not_heard_since: timestampOf(unheardSince, 0),
  };
  yield { body: { $case: "head", value: head } };
  for await (const { key, bytes, seq } of items) {
    const told = seq === undefined ? position : formatPosition({ epoch, seq });
    yield { body: { $case: "row", value: { position: told, key, bytes: Buffer.from(bytes) } } };
  }
}

async function sourceOf(tx: Tx, { workspace, source }: ReadStateRequest, upstream: string): Promise<SourceRow> {
  const row = await tx
    .selectFrom("sources")
    .selectAll()
    .where("source", "=", text(source))
    .where("workspace", "=", text(workspace))
    .executeTakeFirst();
  if (row === undefined) throw new TapedeckError("unknown_source", `no source "${source}" has been recorded`);
  if (sourceParts(row.source as SourceName).upstream !== upstream) {
    throw new TapedeckError("invalid_argument", `${source} has no ${upstream} state`, { field: "collection" });
  }
  return row;
}

/** The one that is named, or the current one then. */
async function sessionOf(tx: Tx, session: string, source: SourceRow, seq: number): Promise<SessionRow | undefined> {
  const query = tx.selectFrom("sessions").selectAll().where("source", "=", source.source);
  if (session === "") {
    return query.where("session", "=", currentSession(sql`${source.source}`, seq)).executeTakeFirst();
  }
  const row = await query.where("session", "=", text(session)).executeTakeFirst();
  if (row === undefined) throw new TapedeckError("unknown_session", `${source.source} has no session "${session}"`);
  return row;
}

async function hadEnded(tx: Tx, session: SessionRow | undefined, at: number | undefined): Promise<boolean> {
  if (session === undefined) return false;
  if (at === undefined) return session.end_position !== null;
  const { rows } = await sql<{ kind: string }>`
    select kind from events where session = ${session.session} and channel = 'tapedeck' and position <= ${at}
      and kind in ('session.started', 'upstream.restored', 'session.ended', 'session.lost')
    order by position desc limit 1`.execute(tx);
  return rows[0]?.kind === "session.ended" || rows[0]?.kind === "session.lost";
}

/** Of the source's current session; what it was before it is known to its end. */
async function notHeardSince(
  tx: Tx,
  { source, status, not_heard_since }: SourceRow,
  session: SessionRow | undefined,
  seq: number,
  at: number | undefined,
): Promise<string | null> {
  const { rows: current } = await sql<{ session: string | null }>`
    select ${currentSession(sql`${source}`, seq)} as session`.execute(tx);
  if (session === undefined || current[0]?.session !== session.session) return null;
  if (at === undefined) return status === "lost" ? not_heard_since : null;
  const { rows } = await sql<Pick<SourceRow, "not_heard_since">>`${sourceAt(sql`${source}`, at)}`.execute(tx);
  return rows[0]?.not_heard_since ?? null;
}

function assertBegun(first: number, seq: number, epoch: string, what: string): void {
  if (first <= seq) return;
  const earliest = formatPosition({ epoch, seq: first });
  throw new TapedeckError("before_first", `${what} begins at ${earliest}`, { field: "at", earliest });
}
