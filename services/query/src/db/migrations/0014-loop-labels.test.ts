import { freshDatabase } from "@tapedeck/shared/testing/database";
import { sql } from "kysely";
import { Migrator } from "kysely/migration";
import { expect, it } from "vitest";
import { type Database, openDatabase } from "../database.ts";
import { migrate } from "../migrate.ts";
import { migrations } from "./index.ts";

const views = ["loop_times", "build_times", "failures", "time_to_green"] as const;

it("the rows of a database from before have the labels of their sessions, as they had", async () => {
  await using fresh = await freshDatabase();
  await using database = openDatabase({ url: fresh.url, connections: 1 });
  const before = Object.fromEntries(Object.entries(migrations).filter(([name]) => name < "0014"));
  await sql`create schema if not exists ${sql.id(database.schema)}`.execute(database.db);
  const migrator = new Migrator({
    db: database.db,
    provider: { getMigrations: async () => before },
    migrationTableSchema: database.schema,
  });
  expect((await migrator.migrateToLatest()).error).toBeUndefined();
  await fill(database);
  const old = await rowsOf(database);
  await migrate(database);
  // A later version has more columns.
  expect(await rowsOf(database)).toMatchObject(old);
  expect(old.loop_times).toMatchObject([{ loop: 3, labels: { branch: "main" } }]);
  expect(old.build_times).toMatchObject([{ loop: 3, labels: { branch: "main" } }]);
  const { rows } = await sql`select loop, labels from loops`.execute(database.db);
  expect(rows).toEqual([{ loop: 3, labels: { branch: "main" } }]);
  const views = await sql<{ name: string }>`
    select relname as name from pg_class where relnamespace = current_schema()::regnamespace
      and reloptions @> array['security_invoker=true'] order by 1`.execute(database.db);
  expect(views.rows.map(({ name }) => name)).toEqual([
    "build_times",
    "build_times_daily",
    "failures",
    "flaky_artifacts",
    "loop_times",
    "loops",
    "slowest_artifacts",
    "time_to_green",
    "waiting_by_developer",
  ]);
});

async function rowsOf({ db }: Database): Promise<Readonly<Record<string, readonly unknown[]>>> {
  const found = views.map(
    async (view) => [view, (await sql`select * from ${sql.table(view)}`.execute(db)).rows] as const,
  );
  return Object.fromEntries(await Promise.all(found));
}

/** A session with a failed loop and its build. */
async function fill({ db }: Database): Promise<void> {
  const source = sql`'acme/alice/shop/skaffold', 'acme', 'alice', 'shop', 'skaffold'`;
  await sql`insert into checkpoint (name, projection, epoch, position) values ('log', '', 'e', 9000)`.execute(db);
  await sql`
    insert into sessions (source, workspace, developer, project, upstream, session, labels, upstream_version, started_at,
      started_ns, ended_ns, end_reason, start_position, last_position, gaps)
    values (${source}, 'A', '{"branch": "main"}', 'v2.14.2', '2026-11-20T09:00:00Z', 0, 0, '', 1024, 8192, 0)`.execute(
    db,
  );
  await sql`
    insert into operations (source, workspace, developer, project, upstream, id, session, runner, loop, kind, subject,
      started_at, started_ns, ended_at, ended_ns, duration_ms, outcome, error_code, error, cache_hit, injected, platform,
      start_position, end_position)
    select ${source}, kind, 'A', 1, 3, kind, '', '2026-11-20T09:00:01Z', 0, '2026-11-20T09:00:02Z', 0, 1000, 'failed', '', 'no',
      false, false, '', 2048, 4096
    from unnest(array['loop', 'build']) as given (kind)`.execute(db);
  await sql`
    insert into finished_loops (source, workspace, developer, project, upstream, id, session, runner, loop, started_at, ended_at,
      duration_ms, outcome, failed_phase, failed_subject, error_code, error, builds, cached, waits, start_position, end_position)
    values (${source}, 'loop', 'A', 1, 3, '2026-11-20T09:00:01Z', '2026-11-20T09:00:02Z', 1000, 'failed', 'build', '', '', 'no',
      1, 0, '[]', 2048, 4096)`.execute(db);
}
