import { type Kysely, sql } from "kysely";
import { liveSchema } from "../database.ts";
import { day, isOwnBuild } from "../migrations/0001-tables/conditions.ts";
import { privateSchema, privateTable } from "../private.ts";
import type { Schema } from "../schema.ts";
import { analyst } from "./roles.ts";

/** The schema of the sums that readers see where developers are hidden. It is not there where they are shown. */
export const teamSchema = "tapedeck_team";

const percentiles = [50, 90].map(
  (percent) => (column: string, where: string) =>
    `percentile_cont(${percent / 100}) within group (order by ${column}) filter (where ${where}) as p${percent}_ms`,
);
const ran = "outcome in ('succeeded', 'failed') and not cache_hit";
const loopDay = "(started_at at time zone 'UTC')::date";
const waits = ["sync", "build", "test", "render", "deploy", "check", "other"].map(
  (phase) => `coalesce(sum(${phase}_ms), 0)::bigint as ${phase}_ms`,
);

/** Counts by project and day. No column has the name of a developer or a source, or text that somebody has written. */
export const teamViews: Readonly<Record<string, string>> = {
  builds_daily: `
    select workspace, project, subject as artifact, ${day} as day,
      count(*) filter (where ${ran}) as builds, count(*) filter (where ${ran} and outcome = 'failed') as failed,
      ${percentiles.map((of) => of("duration_ms", ran)).join(", ")},
      count(*) filter (where cache_hit) as cached
    from ${liveSchema}.operations where ${isOwnBuild} group by 1, 2, 3, 4`,
  loops_daily: `
    select workspace, project, ${loopDay} as day, count(*) as loops, count(distinct developer) as developers,
      count(*) filter (where outcome = 'failed') as failed, coalesce(sum(duration_ms), 0)::bigint as waited_ms,
      ${percentiles.map((of) => of("duration_ms", "outcome = 'succeeded'")).join(", ")},
      ${waits.join(", ")}
    from ${liveSchema}.finished_loops group by 1, 2, 3`,
  failures_daily: `
    select workspace, project, ${loopDay} as day, failed_phase as phase, reason,
      count(*) as failures, count(distinct developer) as developers
    from ${liveSchema}.finished_loops where outcome = 'failed' group by 1, 2, 3, 4, 5`,
};

/**
 * Views that read with the rights of their owner, whom row security does not restrict. They choose the workspace themselves. As
 * security barriers they take no condition of a reader below their own, and they are grouped, so that none reaches a row.
 */
export async function makeTeamViews(tx: Kysely<Schema>, roles: readonly string[]): Promise<void> {
  await sql`create schema if not exists ${sql.id(teamSchema)}`.execute(tx);
  const own = sql`(select ${privateTable("reader_workspace")}())`;
  const isAnalyst = sql`(select pg_catalog.pg_has_role(session_user, ${sql.lit(analyst)}, 'member'))`;
  for (const [name, query] of Object.entries(teamViews)) {
    const view = sql.table(`${teamSchema}.${name}`);
    await sql`create or replace view ${view} with (security_barrier = true) as
      select * from (${sql.raw(query)}) sums where workspace = ${own} or (${own} is null and ${isAnalyst})`.execute(tx);
    await sql`revoke all on ${view} from public`.execute(tx);
  }
  for (const role of roles.map((name) => sql.id(name))) {
    await sql`grant usage on schema ${sql.id(teamSchema)}, ${sql.id(privateSchema)} to ${role}`.execute(tx);
    await sql`grant execute on function ${privateTable("reader_workspace")}() to ${role}`.execute(tx);
    await sql`grant select on all tables in schema ${sql.id(teamSchema)} to ${role}`.execute(tx);
  }
}

export async function dropTeamViews(tx: Kysely<Schema>): Promise<void> {
  const { rows } = await sql`select from pg_namespace where nspname = ${teamSchema}`.execute(tx);
  if (rows.length > 0) await sql`drop schema ${sql.id(teamSchema)} cascade`.execute(tx);
}

const rules = privateTable("reader_rules");

/** Whether the tables that are made now are to hide developers, as those that they replace do. */
export async function areDevelopersHidden(tx: Kysely<Schema>): Promise<boolean> {
  const { rows: there } = await sql<{ there: boolean }>`
    select to_regclass(${`${privateSchema}.reader_rules`}) is not null as there`.execute(tx);
  if (there[0]?.there !== true) return false;
  return (await sql`select from ${rules} where hides_developers`.execute(tx)).rows.length > 0;
}

export async function rememberHidden(tx: Kysely<Schema>, areHidden: boolean): Promise<void> {
  if ((await areDevelopersHidden(tx)) === areHidden) return;
  await sql`create schema if not exists ${sql.id(privateSchema)}`.execute(tx);
  await sql`create table if not exists ${rules} (hides_developers boolean not null)`.execute(tx);
  await sql`delete from ${rules}`.execute(tx);
  await sql`insert into ${rules} values (${areHidden})`.execute(tx);
}
