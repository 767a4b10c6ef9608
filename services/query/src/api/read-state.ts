import type { ReadStateRequest, ReadStateResponse } from "@tapedeck/proto/tapedeck/v1/query";
import { invalidArgument, TapedeckError } from "@tapedeck/shared/errors/errors";
import type { Offset } from "@tapedeck/shared/log/offset";
import { formatPosition, type Position } from "@tapedeck/shared/log/position";
import type { SourceName } from "@tapedeck/shared/source";
import { sourceParts } from "@tapedeck/shared/source";
import { sql } from "kysely";
import type { Tx } from "../db/database.ts";
import { timestampOf } from "../db/moment.ts";
import { readConsistently } from "../db/read.ts";
import type { SessionRow, SourceRow } from "../db/schema.ts";
import { text } from "../db/text.ts";
import type { CollectionScope } from "../views/states/collection.ts";
import { collectionOf } from "./collections.ts";
import { currentSession } from "./current-session.ts";
import type { ApiDeps, CallScope } from "./deps.ts";
import { notProjected, reachAt, reachMinimum } from "./reach.ts";
import { sourceAt } from "./source-at.ts";

/** Yields the head, then the rows. */
export async function* readState(
  deps: ApiDeps,
  request: ReadStateRequest,
  { signal }: CallScope,
): AsyncGenerator<ReadStateResponse, void> {
  const collection = collectionOf(deps.folds, request.collection);
  await reachMinimum(deps, request.min_position);
  const at = await reachAt(deps, request.at);
  const { scope, hasEnded, silentSince, read } = await readConsistently(deps.database(), async (tx, checkpoint) => {
    if (checkpoint === undefined) throw notProjected();
    const scope = await scopeOf(tx, request, collection.upstream, {
      epoch: checkpoint.epoch,
      offset: at ?? checkpoint.position,
    });
    return {
      scope,
      hasEnded: await hadEnded(tx, scope.session, at),
      silentSince: await notHeardSince(tx, scope, at),
      read: await collection.open(tx, scope, deps),
    };
  });

  const items = await read(signal);
  const position = formatPosition(scope);
  const { source, session } = scope;
  const head = {
    ...{ position, source: source.source, session: session?.session ?? "", session_ended: hasEnded },
    not_heard_since: timestampOf(silentSince, 0),
  };
  yield { body: { $case: "head", value: head } };
  for await (const { key, bytes, offset } of items) {
    const reported = offset === undefined ? position : formatPosition({ epoch: scope.epoch, offset });
    yield { body: { $case: "row", value: { position: reported, key, bytes: Buffer.from(bytes) } } };
  }
}

async function scopeOf(
  tx: Tx,
  request: ReadStateRequest,
  upstream: string,
  position: Position,
): Promise<CollectionScope> {
  const source = await sourceOf(tx, request, upstream);
  assertBegun(source.first_position, position, source.source);
  const session = await sessionOf(tx, request.session, source, position.offset);
  if (session !== undefined) assertBegun(session.start_position, position, `session ${session.session}`);
  return { ...position, source, session, isSessionNamed: request.session !== "", keyPrefix: request.key_prefix };
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
    throw invalidArgument(`${source} has no ${upstream} state`, "collection");
  }
  return row;
}

/** The session that is named, or the current one at the position. */
async function sessionOf(tx: Tx, session: string, source: SourceRow, offset: Offset): Promise<SessionRow | undefined> {
  const query = tx.selectFrom("sessions").selectAll().where("source", "=", source.source);
  if (session === "") {
    return query.where("session", "=", currentSession(sql`${source.source}`, offset)).executeTakeFirst();
  }
  const row = await query.where("session", "=", text(session)).executeTakeFirst();
  if (row === undefined) throw new TapedeckError("unknown_session", `${source.source} has no session "${session}"`);
  return row;
}

async function hadEnded(tx: Tx, session: SessionRow | undefined, at: Offset | undefined): Promise<boolean> {
  if (session === undefined) return false;
  if (at === undefined) return session.end_position !== null;
  const { rows } = await sql<{ kind: string }>`
    select kind from events where session = ${session.session} and channel = 'tapedeck' and position <= ${at}
      and kind in ('session.started', 'upstream.restored', 'session.ended', 'session.lost')
    order by position desc limit 1`.execute(tx);
  return rows[0]?.kind === "session.ended" || rows[0]?.kind === "session.lost";
}

/** Since when the source is silent. Null for a session that is not its current one: that one is known to its end. */
async function notHeardSince(
  tx: Tx,
  { source: { source, status, not_heard_since }, session, offset }: CollectionScope,
  at: Offset | undefined,
): Promise<string | null> {
  const { rows: current } = await sql<{ session: string | null }>`
    select ${currentSession(sql`${source}`, offset)} as session`.execute(tx);
  if (session === undefined || current[0]?.session !== session.session) return null;
  if (at === undefined) return status === "lost" ? not_heard_since : null;
  const { rows } = await sql<Pick<SourceRow, "not_heard_since">>`${sourceAt(sql`${source}`, at)}`.execute(tx);
  return rows[0]?.not_heard_since ?? null;
}

function assertBegun(first: Offset, { epoch, offset }: Position, what: string): void {
  if (first <= offset) return;
  const earliest = formatPosition({ epoch, offset: first });
  throw new TapedeckError("before_first", `${what} begins at ${earliest}`, { field: "at", earliest });
}
