import { type Kysely, sql } from "kysely";
import type { Migration } from "kysely/migration";
import { failures } from "./0017-causes-and-shares.ts";

/** A job of Vagrant that failed without a command (setting up, or before its command began) is a cause of a failure, too. */
export const failedJobs: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of statements) await sql.raw(statement).execute(db);
  },
};

const statements = [
  "create index failed_jobs on operations (ended_at) where kind = 'job' and outcome = 'failed' and not injected",
  // A failed command's job, whose subject is the command's instance, is no second cause.
  `create or replace view failures as ${failures}
    union all
    select o.source, o.workspace, o.developer, o.project, o.upstream, s.labels, o.session, o.ended_at,
      o.kind, coalesce(nullif(j.command, ''), nullif(j.operation, ''), ''), o.error_code, o.error, o.id,
      o.end_position, position_text(o.end_position)
    from operations o left join sessions s using (session)
      left join vagrant_jobs j on j.session = o.session and j.job = o.subject
    where o.kind = 'job' and o.outcome = 'failed' and not o.injected and not exists (
      select from operations c
      where c.instance = o.subject and c.instance <> '' and c.session = o.session and c.kind = 'command'
        and c.outcome = 'failed')`,
  // To replace a view makes it show again what its owner sees; a reader of one workspace must not see that for a moment.
  `do $$ begin
    if current_setting('server_version_num')::int >= 150000 then
      alter view failures set (security_invoker = true);
    end if;
  end $$`,
];
