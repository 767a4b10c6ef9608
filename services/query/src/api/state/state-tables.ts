import type { ReadStateRequest } from "@tapedeck/proto/tapedeck/v1/query";
import { invalidArgument, TapedeckError } from "@tapedeck/shared/errors/errors";
import { beyondAll, type Offset } from "@tapedeck/shared/log/offset";
import { formatPosition, type Position } from "@tapedeck/shared/log/position";
import { type Kysely, type RawBuilder, sql } from "kysely";
import { withoutSwap } from "../../db/read.ts";
import type { Schema, SessionRow, SourceRow } from "../../db/schema.ts";
import { text } from "../../db/text.ts";
import type { CollectionScope, SessionRange } from "../../views/states/collection.ts";
import { stateVersion } from "../../views/states/state-version.ts";
import { notProjected } from "../reach.ts";
import { sourceAt } from "../source-at.ts";
import { currentSession } from "./current-session.ts";

/** What ReadState asks of the tables. */
export type StateQuestion = Pick<ReadStateRequest, "workspace" | "source" | "session" | "with_newest_source"> & {
  /** Undefined: now. */
  readonly at: Offset | undefined;
  readonly foldVersion: number;
  /** The versions of stored states that the caller holds, and need not get again; undefined: it needs no state. */
  readonly known: readonly string[] | undefined;
};

/** The tables' answer, all of one moment. */
export type StateTables = {
  /** See tablesVersion. */
  readonly version: string;
  readonly epoch: string;
  /** How far the tables had come. */
  readonly checkpoint: Offset;
  readonly source: Pick<SourceRow, "source" | "upstream" | "first_position"> | undefined;
  /** Where the newest source of the workspace began; null also where nobody asked. */
  readonly newestSource: Offset | null;
  /** The session that was named, or the current one. */
  readonly session: SessionRange | undefined;
  readonly hasEnded: boolean;
  /** The session is the one that is recorded now. */
  readonly isCurrent: boolean;
  /** Since when the source is silent. Null for a session that is not its current one: that one is known to its end. */
  readonly silentSince: string | null;
  /** The stored state of the session that is nearest before the position; undefined: none is. */
  readonly stored: StoredState | undefined;
};

export type StoredState = {
  /** It is the session's newest state: no event between it and the position touches it. */
  readonly isLive: boolean;
  readonly position: Offset;
  /** Another one for every other state. */
  readonly version: string;
  /** Undefined: it has the version that the caller knows. */
  readonly json?: string;
};

type Nullable<T> = { readonly [Name in keyof T]: T[Name] | null };

type StateRow = { readonly tables_version: string; readonly epoch: string; readonly checkpoint: Offset } & Nullable<
  Pick<SourceRow, "source" | "upstream" | "first_position"> &
    Pick<SessionRow, "session" | "start_position" | "last_position"> & {
      readonly newest_source: Offset;
      readonly has_ended: boolean;
      readonly is_current: boolean;
      readonly silent_since: string;
      readonly is_live: boolean;
      readonly position: Offset;
      readonly version: string;
      readonly state: string;
    }
>;

/**
 * Changes with every change of the workspace's tables, by any writer: each writes the checkpoint's row, and a rebuild
 * brings another row or table. Undefined: nothing is projected yet.
 */
export async function tablesVersion(db: Kysely<Schema>, workspace: string): Promise<string | undefined> {
  const { rows } = await sql<{ version: string }>`
    select ${versionOf(sql`checkpoint`)} as version from checkpoint
    where workspace = ${text(workspace)} and not removed`.execute(db);
  return rows[0]?.version;
}

/** @throws TapedeckError not_ready when nothing is projected yet */
export async function readStateTables(db: Kysely<Schema>, question: StateQuestion): Promise<StateTables> {
  const { rows } = await tablesQuery(question).execute(db);
  const [row] = rows;
  if (row === undefined) throw notProjected();
  const { tables_version: version, epoch, checkpoint, newest_source, has_ended, is_current, silent_since } = row;
  return {
    version,
    epoch,
    checkpoint,
    hasEnded: has_ended ?? false,
    silentSince: silent_since,
    isCurrent: is_current ?? false,
    newestSource: newest_source,
    source: sourceIn(row),
    session: sessionIn(row),
    stored: storedIn(row),
  };
}

function sourceIn({ source, upstream, first_position }: StateRow): StateTables["source"] {
  if (source === null || upstream === null || first_position === null) return undefined;
  return { source, upstream, first_position };
}

function sessionIn({ source, session, start_position, last_position }: StateRow): SessionRange | undefined {
  if (source === null || session === null || start_position === null || last_position === null) return undefined;
  return { source, session, start_position, last_position };
}

function storedIn({ is_live, position, version, state }: StateRow): StoredState | undefined {
  if (is_live === null || position === null || version === null) return undefined;
  return { isLive: is_live, position, version, ...(state !== null && { json: state }) };
}

/**
 * The scope of a read: which state, and as of when.
 * @throws TapedeckError unknown_source, unknown_session, before_first, invalid_argument
 */
export function scopeIn(
  { epoch, checkpoint, source, session }: StateTables,
  request: ReadStateRequest,
  upstream: string,
  at: Offset | undefined,
): CollectionScope {
  const position = { epoch, offset: at ?? checkpoint };
  if (source === undefined) {
    throw new TapedeckError("unknown_source", `no source "${request.source}" has been recorded`);
  }
  if (source.upstream !== upstream) throw invalidArgument(`${source.source} has no ${upstream} state`, "collection");
  assertStarted(source.first_position, position, source.source);
  if (session !== undefined) assertStarted(session.start_position, position, `session ${session.session}`);
  else if (request.session !== "") {
    throw new TapedeckError("unknown_session", `${source.source} has no session "${request.session}"`);
  }
  const isSessionNamed = request.session !== "" || request.also.length > 0;
  return { ...position, source: source.source, session, isSessionNamed, keyPrefix: request.key_prefix };
}

function assertStarted(first: Offset, { epoch, offset }: Position, what: string): void {
  if (first <= offset) return;
  const earliest = formatPosition({ epoch, offset: first });
  throw new TapedeckError("before_first", `${what} begins at ${earliest}`, { field: "at", earliest });
}

function versionOf(checkpoint: RawBuilder<unknown>): RawBuilder<string> {
  return sql`concat_ws(' ', ${checkpoint}.tableoid, ${checkpoint}.xmin, ${checkpoint}.epoch, ${checkpoint}.position)`;
}

function tablesQuery({
  workspace,
  source,
  session,
  at,
  foldVersion,
  known,
  ...request
}: StateQuestion): RawBuilder<StateRow> {
  const newest = sql`(select max(first_position) from sources where workspace = ${text(workspace)})`;
  const current = currentSession(sql`of.source`, at ?? beyondAll);
  return sql<StateRow>`${withoutSwap}
    select ${versionOf(sql`log`)} as tables_version, log.epoch, log.position as checkpoint, of.source, of.upstream, of.first_position,
      ${request.with_newest_source ? newest : sql`null::int8`} as newest_source, one.session, one.start_position, one.last_position,
      ${at === undefined ? sql`one.end_position is not null` : hadEnded(at)} as has_ended,
      one.session = current.session and of.status = 'recording' as is_current,
      case when one.session = current.session then ${at === undefined ? silentNow : silentAt(at)} end as silent_since,
      stored.is_live, stored.position, stored.version,
      case when stored.version <> all(${known ?? null}::text[]) then stored.state end as state
    from checkpoint as log
    left join sources as of on of.source = ${text(source)} and of.workspace = ${text(workspace)}
    left join lateral (select ${current} as session) as current on of.source is not null
    left join sessions as one
      on one.source = of.source and one.session = ${session === "" ? sql`current.session` : text(session)}
    left join lateral (${storedState(at ?? beyondAll, foldVersion)}) as stored on true
    where log.workspace = ${text(workspace)} and not log.removed`;
}

const silentNow = sql`case when of.status = 'lost' then of.not_heard_since end`;

function silentAt(at: Offset): RawBuilder<unknown> {
  return sql`(select not_heard_since from (${sourceAt(sql`of.source`, at)}) as stood)`;
}

function hadEnded(at: Offset): RawBuilder<unknown> {
  return sql`(select kind in ('session.ended', 'session.lost') from events
    where session = one.session and channel = 'tapedeck' and position <= ${at}
      and kind in ('session.started', 'upstream.restored', 'session.ended', 'session.lost')
    order by position desc limit 1)`;
}

function storedState(at: Offset, foldVersion: number): RawBuilder<unknown> {
  const fits = sql`session = one.session and fold_version = ${foldVersion} and position <= ${at}`;
  return sql`
    (select true as is_live, position, ${stateVersion} as version, state
     from fold_states where ${fits})
    union all
    (select false, position, concat_ws(' ', tableoid, position), state
     from snapshots where ${fits} order by position desc limit 1)
    order by is_live desc limit 1`;
}
