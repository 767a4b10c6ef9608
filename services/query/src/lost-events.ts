import type { KnownHole } from "@tapedeck/shared/log/holes/known-holes";
import { type Kysely, sql } from "kysely";
import type { Schema } from "./db/schema.ts";

/** The holes that no session.gap in the tables reports: it is of the session of the next event. */
export async function withoutReported(db: Kysely<Schema>, holes: readonly KnownHole[]): Promise<readonly KnownHole[]> {
  const sources = [...new Set(holes.map(({ source }) => source))];
  const { rows } = await sql<{ source: string; session: string }>`
    select distinct source, session from events
    where source = any(${sources}::text[]) and channel = 'tapedeck' and kind = 'session.gap' and detail ? 'lost'`.execute(
    db,
  );
  const isReported = ({ source, sessions }: KnownHole) =>
    rows.some((row) => row.source === source && sessions.includes(row.session));
  return holes.filter((hole) => !isReported(hole));
}
