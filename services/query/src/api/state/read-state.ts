import type { ReadStateRequest, ReadStateResponse } from "@tapedeck/proto/tapedeck/v1/query";
import { asBuffer } from "@tapedeck/shared/as-buffer";
import { invalidArgument } from "@tapedeck/shared/errors/errors";
import type { Offset } from "@tapedeck/shared/log/offset";
import { formatPosition, type Position, parsePosition } from "@tapedeck/shared/log/position";
import type { Kysely } from "kysely";
import { openSnapshot } from "../../db/read.ts";
import type { Schema } from "../../db/schema.ts";
import { timestampOf } from "../../db/timestamp.ts";
import type { CollectionScope } from "../../views/states/collection.ts";
import type { Fold, Folds } from "../../views/states/fold.ts";
import type { WrittenState } from "../../views/states/newest-states.ts";
import { type Collections, collectionNamed, collectionsOf, type NamedCollection } from "../collections.ts";
import type { ApiDeps, CallScope } from "../deps.ts";
import type { SourceLastSeen } from "../last-seen-sources.ts";
import { reachAt, reachMinimum } from "../reach.ts";
import { foldedOf, type HeldState, RecentStates } from "./recent-states.ts";
import { stateAsOf } from "./state-at.ts";
import { readStateTables, type StateTables, scopeIn, tablesVersion } from "./state-tables.ts";

/** Bytes of the items that are held of all states. */
const defaultHeldBytes = 32 * 1024 * 1024;

/**
 * Makes the answer to ReadState: the head, then the rows. It asks the tables once, and keeps the newest states. Where it
 * serves rows of tables, too, all is read in one snapshot, which lasts until the last row is taken or the call's time is up.
 */
export function stateReader(folds: Folds, heldBytes = defaultHeldBytes) {
  const all = collectionsOf(folds);
  const recent = new RecentStates(heldBytes);
  return async function* (
    deps: ApiDeps,
    request: ReadStateRequest,
    { signal }: CallScope,
  ): AsyncGenerator<ReadStateResponse, void> {
    const collections = requestedCollections(all, request);
    const [{ fold, upstream }] = collections;
    const question = JSON.stringify([
      request.workspace,
      request.source,
      request.session,
      upstream,
      request.with_newest_source,
    ]);
    const folded = collections.filter((one) => one.of === "state");
    const held = recent.get(
      question,
      folded.map(({ name }) => name),
    );
    await using snapshot = collections.some((one) => one.of === "tables")
      ? await reachedSnapshot(deps, request)
      : undefined;
    const db = snapshot?.tx ?? deps.database().db;
    const written = deps.newest?.of(request.source) ?? [];
    const read = (at: Offset | undefined) =>
      readTables(db, { request, fold, held, written, at, isStateNeeded: folded.length > 0 });
    const { at, tables } =
      snapshot === undefined
        ? await reached(deps, request, read)
        : { at: snapshot.at, tables: await read(snapshot.at) };
    const scope = scopeIn(tables, request, upstream, at);
    const { state, newest, isRead } = await stateAsOf({ log: deps.log, fold, held, written, signal }, tables, scope);
    // Where the whole state was read, all of its collections are made of it, for the questions that follow.
    if (newest !== undefined && at === undefined && folded.length > 0) {
      recent.put(question, newest, isRead ? foldedOf(all.values(), fold) : folded);
    }

    const position = formatPosition(scope);
    const isNow = at === undefined && tables.isCurrent && tables.silentSince === null;
    const lastSeen = isNow ? deps.lastSeen?.of(scope.source) : undefined;
    yield { body: { $case: "head", value: headOf(tables, scope, lastSeen) } };
    for (const collection of collections) {
      const items = collection.of === "tables" ? collection.items(scope, db) : state.itemsOf(collection);
      for await (const { key, bytes, offset } of items) {
        if (!key.startsWith(scope.keyPrefix)) continue;
        const reported = offset === undefined ? position : formatPosition({ epoch: scope.epoch, offset });
        const row = { position: reported, key, bytes: asBuffer(bytes), collection: collection.name };
        yield { body: { $case: "row", value: row } };
      }
    }
  };
}

type TablesRequest = {
  readonly request: ReadStateRequest;
  readonly fold: Fold;
  readonly held: HeldState | undefined;
  readonly written: readonly WrittenState[];
  readonly at: Offset | undefined;
  readonly isStateNeeded: boolean;
};

/** If their former answer is held, the tables are only checked for changes. */
async function readTables(
  db: Kysely<Schema>,
  { request, fold, held, written, at, isStateNeeded }: TablesRequest,
): Promise<StateTables> {
  if (at === undefined && held !== undefined && (await tablesVersion(db, request.workspace)) === held.tables.version)
    return held.tables;
  const known = [...written.map(({ version }) => version), held?.tables.stored?.version ?? ""];
  // Rows of tables need no state.
  const version = isStateNeeded || at !== undefined ? known : undefined;
  return readStateTables(db, { ...request, at, foldVersion: fold.version, known: version });
}

/** @throws TapedeckError invalid_argument */
function requestedCollections(
  all: Collections,
  { collection, also }: ReadStateRequest,
): [NamedCollection, ...NamedCollection[]] {
  const first = collectionNamed(all, collection);
  const others = also.map((name) => collectionNamed(all, name));
  const foreign = others.find(({ upstream }) => upstream !== first.upstream);
  if (foreign !== undefined) throw invalidArgument(`${foreign.name} is no ${first.upstream} state`, "also");
  return [first, ...others];
}

/**
 * Reads the tables when they have reached what the request waits for. Mostly they have, so they are read first.
 * @throws TapedeckError the errors of reachMinimum and reachAt
 */
async function reached(
  deps: ApiDeps,
  request: Pick<ReadStateRequest, "at" | "min_position">,
  read: (at: Offset | undefined) => Promise<StateTables>,
): Promise<{ readonly at: Offset | undefined; readonly tables: StateTables }> {
  const at = parsePosition(request.at);
  const minimum = parsePosition(request.min_position);
  if ((at !== undefined || request.at === "") && (minimum !== undefined || request.min_position === "")) {
    const tables = await read(at?.offset);
    const reflects = (position: Position | undefined) =>
      position === undefined || (position.epoch === tables.epoch && position.offset <= tables.checkpoint);
    if (reflects(at) && reflects(minimum)) return { at: at?.offset, tables };
  }
  await reachMinimum(deps, request.min_position);
  const offset = await reachAt(deps, request.at);
  return { at: offset, tables: await read(offset) };
}

/**
 * A snapshot that has what the request waits for.
 * @throws TapedeckError the errors of reachMinimum and reachAt
 */
async function reachedSnapshot(deps: ApiDeps, request: Pick<ReadStateRequest, "at" | "min_position">) {
  await reachMinimum(deps, request.min_position);
  const at = await reachAt(deps, request.at);
  return { ...(await openSnapshot(deps.database())), at };
}

function headOf(
  { epoch, hasEnded, silentSince, newestSource }: StateTables,
  scope: CollectionScope,
  lastSeen: SourceLastSeen | undefined,
) {
  return {
    position: formatPosition(scope),
    source: scope.source,
    session: scope.session?.session ?? "",
    session_ended: hasEnded,
    not_heard_since: timestampOf(silentSince, 0) ?? lastSeen?.notHeardSince,
    heard_at: { ...lastSeen?.heardAt },
    newest_source: newestSource === null ? undefined : formatPosition({ epoch, offset: newestSource }),
  };
}
