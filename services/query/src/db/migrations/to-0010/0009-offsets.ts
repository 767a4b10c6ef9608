import { type Kysely, sql } from "kysely";
import type { Migration } from "kysely/migration";

/**
 * Positions become offsets: 1,024 for each message of the log, and the event's index in its message. Until here a position
 * was the number of a message, and each message held one event, whose index is 0.
 */
export const offsets: Migration = {
  async up(db: Kysely<unknown>) {
    for (const [table, ...columns] of places) {
      const set = (value: (column: string) => string) => columns.map((name) => `${name} = ${value(name)}`).join(", ");
      // By way of negative numbers, because a new one may still be another row's old one, and they are unique.
      await sql.raw(`update ${table} set ${set((name) => `-1024 * ${name}`)}`).execute(db);
      await sql.raw(`update ${table} set ${set((name) => `-${name}`)}`).execute(db);
    }
    for (const statement of statements) await sql.raw(statement).execute(db);
  },
};

const first = "first_position";
const last = "last_position";

const places: readonly (readonly [string, ...string[]])[] = [
  ["checkpoint", "position", "applied_position"],
  ["sources", first, last],
  ["sessions", "start_position", last, "end_position"],
  ["events", "position"],
  ["operations", "start_position", "end_position"],
  ["fold_states", "position"],
  ["snapshots", "position"],
  ["rkt_pods", first, last],
  ["rkt_apps", first, last],
  ["rkt_images", first, last],
  ["vagrant_targets", first, last],
  ["vagrant_projects", first, last],
  ["vagrant_bases", first, last],
  ["vagrant_boxes", first, last],
  ["vagrant_runners", first, last],
  ["vagrant_jobs", first, last],
  ["vagrant_job_versions", "position"],
  ["vagrant_job_spans", first, last],
];

const statements = [
  // The tables hold whole messages up to the checkpoint.
  `update checkpoint set position = position + 1023 where position > 0`,
  `create function base36(number bigint) returns text language sql immutable strict parallel safe return (
    select string_agg(substr('0123456789abcdefghijklmnopqrstuvwxyz', (number / place % 36)::int + 1, 1), ''
      order by place desc)
    from unnest(array[1, 36, 1296, 46656, 1679616, 60466176, 2176782336, 78364164096, 2821109907456]) as place
    where place = 1 or place <= number)`,
  // With the rights of its owner, because readers of the tables may not read the checkpoint.
  `create function log_epoch() returns text language sql stable security definer return (
    select epoch from checkpoint where name = 'log')`,
  // A position as the API writes and takes it.
  `create function position_text(log_offset bigint) returns text language sql stable strict return
    length(base36(log_offset / 1024)) || base36(log_offset / 1024) || lpad(base36(log_offset % 1024), 2, '0')
      || '-' || log_epoch()`,
  `create or replace view loops as
    select source, workspace, developer, project, upstream, session, runner, loop, iteration, id,
      started_at, started_ns, ended_at, ended_ns, duration_ms, outcome, error_code, error, injected,
      start_position, end_position,
      position_text(start_position) as start_position_text, position_text(end_position) as end_position_text
    from operations where kind = 'loop'`,
  `create or replace view build_times as
    select o.workspace, o.developer, o.project, o.source, s.labels, o.subject as artifact, o.session, o.runner, o.loop,
      coalesce(o.started_at, o.ended_at) as started_at, o.duration_ms, o.outcome, o.cache_hit, o.error_code, o.error,
      o.platform, s.upstream_version as skaffold_version, o.injected, o.start_position,
      position_text(o.start_position) as start_position_text
    from operations o join sessions s using (session)
    where o.kind = 'build' and o.upstream = 'skaffold'`,
  `create or replace view command_times as
    select o.workspace, o.developer, o.project, o.source, s.labels, o.subject as command, o.instance as job, o.session,
      j.args, j.scope, j.scope_name, coalesce(o.started_at, o.ended_at) as started_at, o.duration_ms, o.outcome,
      o.exit_code, o.error_code, o.error, s.upstream_version as vagrant_version, o.start_position,
      position_text(o.start_position) as start_position_text
    from operations o join sessions s using (session)
      left join vagrant_jobs j on j.session = o.session and j.job = o.instance
    where o.kind = 'command' and o.upstream = 'vagrant'`,
];
