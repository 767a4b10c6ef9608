import { type RawBuilder, sql } from "kysely";
import { text } from "../../../db/text.ts";
import type { CollectionScope, SessionRange } from "../../states/collection.ts";

/** The condition for jobs of the scope's source (of its session, where the caller named one) with the scope's prefix. */
export function jobsIn(
  { source, isSessionNamed, keyPrefix }: CollectionScope,
  { session }: SessionRange,
): RawBuilder<unknown> {
  const prefix = text(keyPrefix);
  return sql`${isSessionNamed ? sql`session = ${session}` : sql`source = ${source}`}
    and job >= ${prefix} and job < ${`${prefix}\u{10FFFF}`}`;
}
