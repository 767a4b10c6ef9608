import type { SessionRow, SourceRow } from "../db/schema.ts";

export type ReadPlace = {
  readonly source: SourceRow;
  /** The one that is named, or the current one; undefined: there was none by then. */
  readonly session: SessionRow | undefined;
  /** A session was asked for, and nothing else. */
  readonly named: boolean;
  readonly epoch: string;
  readonly seq: number;
  readonly key_prefix: string;
};
