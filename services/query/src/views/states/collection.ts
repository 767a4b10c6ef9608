import type { LogReader } from "@tapedeck/shared/log/log";
import type { Offset } from "@tapedeck/shared/log/offset";
import type { Database, Tx } from "../../db/database.ts";
import type { SessionRow, SourceRow } from "../../db/schema.ts";

/** What ReadState serves under one name. */
export type Collection = {
  /** Looks up, in the transaction that resolved the scope, what reading the items afterwards needs. */
  readonly open: (tx: Tx, scope: CollectionScope, deps: CollectionDeps) => Promise<ReadItems>;
};

export type ReadItems = (signal: AbortSignal) => Promise<Iterable<Item> | AsyncIterable<Item>>;

/** `offset`: the last event that reported the item, where it is known. */
export type Item = { readonly key: string; readonly bytes: Uint8Array; readonly offset?: Offset };

/** Which items are read, and as of which position. */
export type CollectionScope = {
  readonly source: SourceRow;
  /** The session that the caller named, else the current one; undefined: none had begun by then. */
  readonly session: SessionRow | undefined;
  /** The caller named the session and wants no other session's items. */
  readonly isSessionNamed: boolean;
  readonly epoch: string;
  readonly offset: Offset;
  readonly keyPrefix: string;
};

/** Both throw `not_ready` while theirs is away. */
export type CollectionDeps = {
  readonly database: () => Database;
  readonly log: () => LogReader;
};
