import type { Offset } from "@tapedeck/shared/log/offset";
import type { Kysely } from "kysely";
import type { Schema, SessionRow } from "../../db/schema.ts";

/**
 * What ReadState serves under one name: a part of the session's folded state, or rows of tables beside it. `db` is the
 * snapshot that the folded state was read in, so that all collections of an answer are of one moment.
 */
export type Collection<State> =
  | { readonly of: "state"; readonly items: (state: State) => readonly Item[] }
  | { readonly of: "tables"; readonly items: (scope: CollectionScope, db: Kysely<Schema>) => AsyncIterable<Item> };

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
