import type { ReadStateRequest, ReadStateResponse } from "@tapedeck/proto/tapedeck/v1/query";
import { TapedeckError } from "@tapedeck/shared/errors/errors";
import { formatPosition } from "@tapedeck/shared/log/position";
import type { SourceName } from "@tapedeck/shared/source";
import { sourceParts } from "@tapedeck/shared/source";
import { sql } from "kysely";
import type { Tx } from "../db/database.ts";
import { readConsistently } from "../db/read.ts";
import type { SessionRow, SourceRow } from "../db/schema.ts";
import { text } from "../db/text.ts";
import type { Fold, Folds } from "../views/states/fold.ts";
import { currentSession } from "./current-session.ts";
import type { ApiDeps, CallScope } from "./deps.ts";
import { notProjected, reachAt, reachMinimum } from "./place.ts";
import { foldFrom, nearestState } from "./state-at.ts";

export async function readState(
  deps: ApiDeps,
  request: ReadStateRequest,
  { signal }: CallScope,
): Promise<readonly ReadStateResponse[]> {
  const { fold, collection, upstream } = collectionOf(deps.folds, request.collection);
  await reachMinimum(deps, request.min_position);
  const at = await reachAt(deps, request.at);
  const found = await readConsistently(deps.database(), async (tx, checkpoint) => {
    if (checkpoint === undefined) throw notProjected();
    const { epoch } = checkpoint;
    const seq = at ?? checkpoint.position;
    const source = await sourceOf(tx, request, upstream);
    assertBegun(source.first_position, seq, epoch, source.source);
    const session = await sessionOf(tx, request.session, source, seq);
    if (session === undefined) return { epoch, seq, source };
    assertBegun(session.start_position, seq, epoch, `session ${session.session}`);
    const ended = at === undefined ? session.end_position !== null : await hadEnded(tx, session.session, at);
    return { epoch, seq, source, session, ended, base: await nearestState(tx, fold, session, seq) };
  });

  const state =
    found.base === undefined ? fold.initial : await foldFrom(deps.log, fold, found.session, found.base, signal);
  const position = formatPosition(found);
  const head = {
    position,
    source: found.source.source,
    session: found.session?.session ?? "",
    session_ended: found.ended ?? false,
  };
  return [
    { body: { $case: "head", value: head } },
    ...collection(state)
      .filter(({ key }) => key.startsWith(request.key_prefix))
      .map(({ key, bytes }) => ({
        body: { $case: "row" as const, value: { position, key, bytes: Buffer.from(bytes) } },
      })),
  ];
}

function collectionOf(folds: Folds, name: string) {
  const [upstream = "", part = ""] = name.split(".");
  const byUpstream: Readonly<Record<string, Fold>> = folds;
  const fold = Object.hasOwn(byUpstream, upstream) ? byUpstream[upstream] : undefined;
  const collection = fold !== undefined && Object.hasOwn(fold.collections, part) ? fold.collections[part] : undefined;
  if (fold === undefined || collection === undefined) {
    const all = Object.entries(byUpstream).flatMap(([of, { collections }]) =>
      Object.keys(collections).map((c) => `${of}.${c}`),
    );
    throw new TapedeckError("invalid_argument", `no collection "${name}": any of ${all.join(", ")}`, {
      field: "collection",
    });
  }
  return { fold, collection, upstream };
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

async function hadEnded(tx: Tx, session: string, at: number): Promise<boolean> {
  const { rows } = await sql<{ kind: string }>`
    select kind from events where session = ${session} and channel = 'tapedeck' and position <= ${at}
      and kind in ('session.started', 'upstream.restored', 'session.ended', 'session.lost')
    order by position desc limit 1`.execute(tx);
  return rows[0]?.kind === "session.ended" || rows[0]?.kind === "session.lost";
}

function assertBegun(first: number, seq: number, epoch: string, what: string): void {
  if (first <= seq) return;
  const earliest = formatPosition({ epoch, seq: first });
  throw new TapedeckError("before_first", `${what} begins at ${earliest}`, { field: "at", earliest });
}
