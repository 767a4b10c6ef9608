import { BuildStatsRequest, ListRequest } from "@tapedeck/proto/tapedeck/v1/query";
import { endOf, offsetOf } from "@tapedeck/shared/log/offset";
import { freshDatabase } from "@tapedeck/shared/testing/database";
import { sql } from "kysely";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Database, openDatabase } from "../db/database.ts";
import { ProjectedPosition } from "../projecting/progress.ts";
import { sumBuildDays } from "../projecting/sum-build-days.ts";
import { migrated } from "../testing/migrated.ts";
import { folds } from "../views/folds.ts";
import type { ApiDeps } from "./deps.ts";
import { listOperations } from "./list-operations.ts";
import { listSessions } from "./list-sessions.ts";
import { listSources } from "./list-sources.ts";
import { buildStats } from "./stats/build-stats.ts";

// What is asked of many operations is read from an index that has little else: to read all takes longer with every build.

const cleanup = new AsyncDisposableStack();
let database: Database;
let deps: ApiDeps;

beforeAll(async () => {
  const fresh = cleanup.use(await freshDatabase(migrated));
  database = cleanup.use(openDatabase({ url: fresh.url, connections: 1 }));
  await fill(database);
  const log = () => expect.fail("the log was asked");
  deps = { workspace: "acme", database: () => database, log, progress: new ProjectedPosition(), folds };
});
afterAll(() => cleanup.disposeAsync());

/** 50,000 builds and 5,000 loops of a year, by 20 developers. */
async function fill({ db }: Database): Promise<void> {
  await sql`insert into checkpoint (workspace, projection, epoch, position) values ('acme', '', 'e', ${endOf(1_000_000)})`.execute(
    db,
  );
  await sql`
    insert into sources (source, workspace, developer, project, upstream, developer_name, project_name, status, connected,
      in_session, gaps, address, first_position, last_position, last_event_ns)
    select 'acme/dev' || n || '/shop/skaffold', 'acme', 'dev' || n, 'shop', 'skaffold', '', '', 'waiting', false, false, 0,
      '', n, n, 0 from generate_series(0, 19) as n`.execute(db);
  await sql`
    insert into operations (source, workspace, developer, project, upstream, id, session, runner, loop, kind, subject,
      started_at, started_ns, ended_at, ended_ns, duration_ms, outcome, error_code, error, cache_hit, injected, platform,
      start_position, end_position)
    select 'acme/dev' || n % 20 || '/shop/skaffold', 'acme', 'dev' || n % 20, 'shop', 'skaffold', n::text, 's' || n / 100, 1,
      n % 100, case when n % 11 = 0 then 'loop' else 'build' end, case when n % 11 = 0 then '' when n = 4321 then 'rare' else 'artifact' || n % 7 end,
      timestamptz '2026-01-01' + n * interval '10 minutes', 0, null, 0, n % 977,
      case when n % 19 = 0 then 'failed' else 'succeeded' end, '', '', false, false, '', n * 10 * 1024, (n * 10 + 5) * 1024
    from generate_series(1, 55000::bigint) as n`.execute(db);
  await sql`
    insert into sessions (source, workspace, developer, project, upstream, session, labels, start_position, last_position,
      end_reason, upstream_version, gaps, started_ns, ended_ns)
    select min(source), 'acme', min(developer), 'shop', 'skaffold', session,
      jsonb_build_object('branch', case when session = 's100' then 'rare' else 'main' end), min(start_position),
      max(end_position), '', '', 0, 0, 0 from operations group by session`.execute(db);
  await sql`vacuum analyze operations, sessions`.execute(db);
  await sql`analyze sources`.execute(db);
  // The days of the last weeks stay as those of today, whose builds still change.
  await sumBuildDays(database, { before: "2027-01-14" });
}

const time = (text: string) => ({ seconds: BigInt(Date.parse(text) / 1_000), nanos: 0 });
const day = { from: time("2026-05-01T00:00:00Z"), to: time("2026-05-02T00:00:00Z") };

const lists: readonly Partial<ListRequest>[] = [
  {},
  { kinds: ["build"] },
  { kinds: ["command"] },
  { outcomes: ["failed"] },
  { outcomes: ["unknown"] },
  { kinds: ["loop"], outcomes: ["canceled"] },
  { developers: ["dev3"] },
  { developers: ["nobody"] },
  { sources: ["dev3/shop"], outcomes: ["unknown"] },
  { projects: ["shop"], kinds: ["loop"], outcomes: ["failed"] },
  { kinds: ["loop"], per_source: 20 },
  { kinds: ["build", "loop"], per_source: 5, developers: ["dev3"] },
  { sessions: ["s100"] },
  { sessions: ["s100"], per_source: 5 },
  { labels: { branch: "rare" } },
  { labels: { branch: "none" }, kinds: ["loop"], outcomes: ["failed"] },
  { sessions: ["none"] },
  { sessions: ["s100"], runner: 1, loop: 11 },
  { subjects: ["artifact3"] },
  { subjects: ["none"] },
  { subjects: ["artifact3"], kinds: ["loop"] },
  { artifacts: ["artifact3"] },
  { artifacts: ["artifact3"], kinds: ["loop"], outcomes: ["failed"] },
  { artifacts: ["artifact3"], labels: { branch: "rare" } },
  { artifacts: ["rare"] },
  { artifacts: ["rare", "none"], kinds: ["loop"], developers: ["dev1"] },
  day,
  { ...day, outcomes: ["failed"] },
  { from: time("2027-12-01T00:00:00Z") },
  { kinds: ["loop"], page: Buffer.from(`older than ${offsetOf(1_000)}`).toString("base64url") },
];
it.each(named(lists))("the list of operations with %s", async (_, request) => {
  await expectFew(() => listOperations(deps, { ...ListRequest.fromPartial({ workspace: "acme" }), ...request }));
});

const ofSessions: readonly Partial<ListRequest>[] = [
  { artifacts: ["artifact3"] },
  { artifacts: ["rare"] },
  { artifacts: ["none"] },
  { artifacts: ["artifact3"], labels: { branch: "rare" } },
];
it.each(named(ofSessions))("the lists of sources and sessions with %s", async (_, request) => {
  const full = { ...ListRequest.fromPartial({ workspace: "acme" }), ...request };
  await expectFew(() => listSessions(deps, full));
  await expectFew(() => listSources(deps, full));
});

it.each(["artifact3", "rare"])(
  "lists with the artifact %s have exactly what built it, and what ran beside it",
  async (artifact) => {
    const request = { ...ListRequest.fromPartial({ workspace: "acme", limit: 1_000 }), artifacts: [artifact] };
    const built = sql`select session, runner, loop from operations where kind = 'build' and subject = ${artifact}`;
    const all = sql<{ id: string }>`
    select id from operations o where subject = ${artifact} or kind <> 'build' and (session, runner, loop) in (${built})
    order by start_position desc limit 1000`;
    const { items } = await listOperations(deps, request);
    expect(items.map(({ id }) => id)).toEqual((await all.execute(database.db)).rows.map(({ id }) => id));
    const sessions = sql<{ session: string }>`
    select session from sessions where session in (select session from (${built}) b) order by start_position desc`;
    const expected = (await sessions.execute(database.db)).rows.map(({ session }) => session);
    expect((await listSessions(deps, request)).items.map(({ session }) => session)).toEqual(expected);
  },
);

it("the list of operations up to a time reads the index of times up to it, once", async () => {
  const request = { ...ListRequest.fromPartial({ workspace: "acme" }), to: day.to };
  await expectFew(() => listOperations(deps, request), 25_000);
});

const stats: readonly Partial<BuildStatsRequest>[] = [
  day,
  { ...day, group: ["artifact", "developer"] },
  { developers: ["dev3"], group: ["day"] },
  { sessions: ["s100"] },
];
it.each(named(stats))("statistics of builds with %s", async (_, request) => {
  await expectFew(() => buildStats(deps, { ...BuildStatsRequest.fromPartial({ workspace: "acme" }), ...request }));
});

it.each([
  "build_times_daily where day = '2026-05-01'",
  "build_times_daily where day >= '2026-12-01'",
  "build_times_daily where developer = 'dev3'",
  "build_times where outcome = 'failed' order by started_at desc limit 5",
  "loops where outcome = 'failed' order by started_at desc limit 5",
])("the view %s", async (view) => {
  await expectFew(() => sql`select * from ${sql.raw(view)}`.execute(database.db));
});

function named<Request>(requests: readonly Request[]): [string, Request][] {
  return requests.map((request) => [
    JSON.stringify(request, (_, value) => (typeof value === "bigint" ? Number(value) : value)),
    request,
  ]);
}

/** The table has 55,000 operations. */
const few = 8_000;

async function expectFew(ask: () => Promise<unknown>, max = few): Promise<void> {
  const before = await rowsRead();
  await ask();
  const { scans, rows } = await rowsRead();
  expect({ scans: scans - before.scans, isFew: rows - before.rows < max, rows: rows - before.rows }).toMatchObject({
    scans: 0,
    isFew: true,
  });
}

async function rowsRead(): Promise<{ readonly scans: number; readonly rows: number }> {
  await sql`select pg_stat_force_next_flush()`.execute(database.db);
  const { rows } = await sql<{ scans: number; rows: number }>`
    select seq_scan as scans, (select sum(idx_tup_read)::bigint from pg_stat_user_indexes where relid = t.relid) as rows
    from pg_stat_user_tables t where relname = 'operations'`.execute(database.db);
  return rows[0] ?? { scans: Number.NaN, rows: Number.NaN };
}
