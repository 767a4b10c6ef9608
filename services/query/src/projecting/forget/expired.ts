import type { RecordedEvent } from "@tapedeck/shared/log/log";
import { sql } from "kysely";
import type { Tx } from "../../db/database.ts";
import { counted } from "../../db/migrations/0001-tables/builds.ts";
import { day } from "../../db/migrations/0001-tables/conditions.ts";

/** The sessions that these events erase because they ended longer ago than their workspace keeps facts. */
export function expiredIn(events: readonly RecordedEvent[]): readonly string[] {
  return events.flatMap(({ event }) =>
    event.kind === "session.erased" &&
    event.detail?.$case === "session_detail" &&
    event.detail.value.erased?.expired === true
      ? [event.subject || event.session]
      : [],
  );
}

/** Keeps how many builds the sessions had, before their rows are deleted. */
export async function keepCounts(tx: Tx, sessions: readonly string[]): Promise<void> {
  if (sessions.length === 0) return;
  await sql`
    insert into expired_builds
      (workspace, session, project, artifact, day, bucket, builds, failed, cached, canceled, unknown)
    select workspace, session, project, subject, coalesce(${sql.raw(day)}, '-infinity'),
      case when ran and duration_ms is not null then duration_bucket(duration_ms) else -1 end as bucket,
      count(*) filter (where ran), count(*) filter (where ran and outcome = 'failed'), count(*) filter (where cache_hit),
      count(*) filter (where outcome = 'canceled'), count(*) filter (where outcome = 'unknown')
    from (
      select *, coalesce(outcome in ('succeeded', 'failed') and not cache_hit, false) as ran
      from operations where session = any(${sessions}::text[]) and ${sql.raw(counted)}) build
    group by 1, 2, 3, 4, 5, 6
    on conflict do nothing`.execute(tx);
}
