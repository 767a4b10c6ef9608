import type { LogReader } from "@tapedeck/shared/log/log";
import type { Offset } from "@tapedeck/shared/log/offset";
import type { Database } from "../../db/database.ts";
import type { SessionRow } from "../../db/schema.ts";

/** What ReadState serves under one name from tables of its own. */
export type Collection = (scope: CollectionScope, deps: CollectionDeps) => AsyncIterable<Item>;

/** `offset`: the last event that reported the item, where it is known. */
export type Item = { readonly key: string; readonly bytes: Uint8Array; readonly offset?: Offset };

/** Which items are read, and as of which position. */
export type CollectionScope = {
  readonly source: string;
  /** The session that the caller named, else the current one; undefined: none had begun by then. */
  readonly session: SessionRange | undefined;
  /** The caller named the session and wants no other session's items. */
  readonly isSessionNamed: boolean;
  readonly epoch: string;
  readonly offset: Offset;
  readonly keyPrefix: string;
};

/** A session, and the positions of its first and last event. */
export type SessionRange = Pick<SessionRow, "session" | "source" | "start_position" | "last_position">;

/** Both throw `not_ready` while theirs is away. */
export type CollectionDeps = {
  readonly database: () => Database;
  readonly log: () => LogReader;
};
