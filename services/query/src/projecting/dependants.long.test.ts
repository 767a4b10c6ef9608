import { type SourceName, sourceName } from "@tapedeck/shared/source";
import { sql } from "kysely";
import { expect, it } from "vitest";
import { openDatabase } from "../db/database.ts";
import { logsIn } from "../testing/logs.ts";
import { projectUntil } from "../testing/run-projection.ts";
import { scenario } from "../testing/scenario.ts";
import { type Stage, schemas, stage } from "../testing/stage.ts";
import { views } from "../views/views.ts";
import { rebuild } from "./rebuild.ts";

const all = views({ textRows: false });
const source: SourceName = sourceName({ workspace: "acme", developer: "alice", project: "shop", upstream: "skaffold" });

/** Tables with a build of "web". */
async function projected(on: Stage) {
  const script = scenario(source);
  const session = script.session("s1");
  session.started();
  session.configured();
  session.loopStarted();
  session.build("web", "started");
  session.build("web", "succeeded");
  const end = (await on.write(script.events)).at(-1) ?? 0;
  await projectUntil(on.databaseUrl, on.log.reader, end);
  return (signal: AbortSignal) =>
    rebuild({ databaseUrl: on.databaseUrl, logs: logsIn(on.log.reader), views: all, signal });
}

/** Runs statements as the owner of the database. */
async function run(on: Stage, ...statements: readonly string[]): Promise<readonly unknown[]> {
  await using database = openDatabase({ url: on.databaseUrl, connections: 1 });
  let last: readonly unknown[] = [];
  for (const statement of statements) last = (await sql.raw(statement).execute(database.db)).rows;
  return last;
}

const role = `tapedeck_test_${process.pid}`;

it("keeps what others made of the tables through a rebuild, with owners, rights and comments", async ({ signal }) => {
  await using on = await stage();
  const again = await projected(on);
  await run(on, `create role ${role}`);
  await using cleanup = new AsyncDisposableStack();
  cleanup.defer(async () => void (await run(on, `drop owned by ${role} cascade`, `drop role ${role}`)));
  await run(
    on,
    "create schema team",
    `grant usage on schema team, tapedeck, tapedeck_internal to ${role}`,
    `grant select on tapedeck.sources, tapedeck.operations, tapedeck_internal.checkpoint to ${role}`,
    'create view team."My builds" with (security_barrier = true) as select artifact, outcome from tapedeck.build_times',
    `grant select on team."My builds" to ${role}`,
    "comment on view team.\"My builds\" is 'ours'",
    'create view team.above as select upper(artifact) as artifact from team."My builds"',
    "create materialized view team.kept as select o.id, b.artifact, tapedeck.position_text(o.start_position, o.workspace) as at from tapedeck.operations o join team.above b on true where o.kind = 'build'",
    "create unique index kept_by_id on team.kept (id)",
    "comment on materialized view team.kept is 'kept'",
    "comment on column team.kept.at is 'where'",
    `grant select on team.kept to ${role}`,
    `grant create on schema team to ${role}`,
    "create view team.of_kept as select count(*) as n from team.kept",
    "create materialized view team.empty as select count(*) as n from team.kept with no data",
    `alter materialized view team.empty owner to ${role}`,
    "create function team.by_text() returns bigint language sql as 'select count(*) from tapedeck.build_times'",
    "create function team.by_body() returns bigint begin atomic select count(*) from tapedeck.build_times; end",
    "create function team.rows() returns setof tapedeck.build_times language sql as 'select * from tapedeck.build_times'",
    "create function team.label(tapedeck.operations) returns text language sql as 'select $1.subject'",
    `revoke execute on function team.rows() from public`,
    `grant execute on function team.rows() to ${role}`,
    "create view tapedeck.inside as select session from tapedeck.sessions",
    "create table tapedeck.notes (note text)",
    "insert into tapedeck.notes values ('mine')",
    "create view team.epochs as select count(distinct epoch) as n from tapedeck_internal.checkpoint",
    "create view tapedeck_internal.hidden as select count(*) as n from tapedeck_internal.fold_states",
  );
  const look = async () => ({
    views: await run(on, 'select * from team."My builds"'),
    above: await run(on, "select * from team.above"),
    kept: await run(on, "select * from team.kept"),
    of_kept: await run(on, "select * from team.of_kept"),
    functions: await run(
      on,
      "select team.by_text() as a, team.by_body() as b, (select artifact from team.rows()) as c",
    ),
    label: await run(on, "select o.label from tapedeck.operations o where kind = 'build'").catch(() =>
      run(on, "select team.label(o) from tapedeck.operations o where kind = 'build'"),
    ),
    inside: await run(on, "select * from tapedeck.inside"),
    notes: await run(on, "select * from tapedeck.notes"),
    epochs: await run(on, "select * from team.epochs"),
    hidden: await run(on, "select * from tapedeck_internal.hidden"),
    objects: await run(
      on,
      `select c.relname, c.relkind, c.reloptions, c.relacl::text, pg_get_userbyid(relowner) as owner, relispopulated,
        obj_description(c.oid, 'pg_class') as comment, col_description(c.oid, 3) as third,
        case when relkind in ('v', 'm') then pg_get_viewdef(c.oid) when relkind = 'i' then pg_get_indexdef(c.oid) end as definition
      from pg_class c join pg_namespace n on n.oid = relnamespace where nspname = 'team' or relname in ('inside', 'notes', 'hidden') order by relname`,
    ),
    functionRights: await run(
      on,
      "select proname, proacl::text, pg_get_functiondef(oid) as definition from pg_proc where pronamespace = 'team'::regnamespace order by 1",
    ),
    rights: await run(
      on,
      `select has_table_privilege('${role}', 'tapedeck.sources', 'select') as sources,
        has_table_privilege('${role}', 'tapedeck.sessions', 'select') as sessions,
        has_table_privilege('${role}', 'tapedeck_internal.checkpoint', 'select') as checkpoint,
        has_schema_privilege('${role}', 'tapedeck', 'usage') as usage,
        has_schema_privilege('${role}', 'tapedeck_internal', 'usage') as internal`,
    ),
  });
  const before = await look();
  expect(before).toMatchObject({
    views: [{ artifact: "web", outcome: "succeeded" }],
    kept: [{ artifact: "WEB" }],
    of_kept: [{ n: 1 }],
    functions: [{ a: 1, b: 1, c: "web" }],
    epochs: [{ n: 1 }],
    hidden: [{ n: 1 }],
    rights: [{ sources: true, sessions: false, checkpoint: true, usage: true, internal: true }],
  });
  const oid = () =>
    run(on, "select 'team.above'::regclass::oid as above, 'team.\"My builds\"'::regclass::oid as builds");
  const identity = await oid();

  expect(await again(signal)).toBe(true);
  expect(await look()).toEqual(before);
  expect(await oid()).toEqual(identity);
  expect(await schemas(on.databaseUrl)).toEqual(["tapedeck", "tapedeck_internal"]);
  // They read the new tables, not a copy of the old ones.
  await run(
    on,
    "update tapedeck.operations set subject = 'api' where kind = 'build'",
    "refresh materialized view team.kept",
  );
  expect(await look()).toMatchObject({
    views: [{ artifact: "api" }],
    kept: [{ artifact: "API" }],
    functions: [{ c: "api" }],
  });
  expect(await again(signal)).toBe(true);
  expect((await look()).views).toEqual(before.views);
});

it("keeps foreign keys, and refuses what does not fit the new tables, by its name, with the old tables in place", async ({
  signal,
}) => {
  await using on = await stage();
  const again = await projected(on);
  await run(
    on,
    "create table public.marks (session text references tapedeck.sessions)",
    "insert into public.marks values ('s1')",
  );
  expect(await again(signal)).toBe(true);
  await expect(run(on, "insert into public.marks values ('other')")).rejects.toThrow("foreign key");

  await run(on, "create table public.copies (build tapedeck.build_times)");
  await expect(again(signal)).rejects.toMatchObject({
    name: "DependantsError",
    message: expect.stringContaining("column build of table public.copies"),
  });
  expect(await run(on, "select count(*) as n from tapedeck.operations where kind = 'build'")).toEqual([{ n: 1 }]);
  await run(on, "drop table public.copies");
  expect(await again(signal)).toBe(true);
});

it("a rebuild waits for no transaction that has read the old tables", async ({ signal }) => {
  await using on = await stage();
  const again = await projected(on);
  await using readers = openDatabase({ url: on.databaseUrl, connections: 1 });
  await readers.db.transaction().execute(async (idle) => {
    const read = async () => (await sql`select kind, subject from operations where kind = 'build'`.execute(idle)).rows;
    const before = await read();
    expect(await again(signal)).toBe(true);
    expect(await schemas(on.databaseUrl)).toEqual([
      "tapedeck",
      "tapedeck_internal",
      "tapedeck_retired",
      "tapedeck_retired_internal",
    ]);
    // And the next one for none that still reads those before.
    expect(await again(signal)).toBe(true);
    expect(await run(on, "select kind, subject from tapedeck.operations where kind = 'build'")).toEqual(before);
  });
  expect(await again(signal)).toBe(true);
  expect(await schemas(on.databaseUrl)).toEqual(["tapedeck", "tapedeck_internal"]);
});

it("drops no schema of somebody else whose name only begins as that of replaced tables", async ({ signal }) => {
  await using on = await stage();
  const again = await projected(on);
  await run(
    on,
    "create schema tapedeck_retired_7",
    "create schema tapedeck_retired_copies",
    "create schema tapedeck_retired2",
  );
  expect(await again(signal)).toBe(true);
  expect(await schemas(on.databaseUrl)).toEqual([
    "tapedeck",
    "tapedeck_internal",
    "tapedeck_retired2",
    "tapedeck_retired_copies",
  ]);
});
