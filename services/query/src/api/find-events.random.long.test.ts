import { ListRequest } from "@tapedeck/proto/tapedeck/v1/query";
import { type Filter, matches, parseFilter } from "@tapedeck/shared/filter/filter";
import type { RecordedEvent } from "@tapedeck/shared/log/log";
import { endOf, indexOf, justBefore, logStart, type Offset, offsetOf, sequenceOf } from "@tapedeck/shared/log/offset";
import { freshDatabase } from "@tapedeck/shared/testing/database";
import { endPosition } from "@tapedeck/shared/testing/positions";
import { sql } from "kysely";
import { expect, it } from "vitest";
import { type Database, openDatabase } from "../db/database.ts";
import { ProjectedPosition } from "../projecting/progress.ts";
import { migrated } from "../testing/migrated.ts";
import { applyInBatches, inMessages } from "../testing/positions.ts";
import { type Random, randomEvents, seeded } from "../testing/random-scenario.ts";
import { randomServer } from "../testing/random-server.ts";
import { projectUntil } from "../testing/run-projection.ts";
import { scenario } from "../testing/scenario.ts";
import { stage } from "../testing/stage.ts";
import { vagrantSession, vagrantShop } from "../testing/vagrant-scenario.ts";
import { blockSize } from "../views/events/blocks.ts";
import { folds } from "../views/folds.ts";
import type { ApiDeps } from "./deps.ts";
import type { SearchRange } from "./event-search.ts";
import { findEvents, findPositions } from "./find-events.ts";

const words: Readonly<Record<keyof Filter, readonly string[]>> = {
  developers: ["alice", "bob", "carol", "nobody"],
  projects: ["shop", "site", "none"],
  upstreams: ["skaffold", "vagrant", "rkt"],
  sources: ["alice/shop", "alice/shop/skaffold", "acme/bob/shop/skaffold", "globex/carol/site/skaffold"],
  sessions: ["acme-alice-shop-skaffold-1", "acme-alice-shop-skaffold-3", "acme-bob-shop-skaffold-last", "01V1", "none"],
  kinds: ["build.*", "*.failed", "log.written", "mirror.*", "loop.started", "*", "job.*", "terminal.written"],
  subjects: ["web", "api", "odd\0name", "n".repeat(3_000), "deployment/web", "up", "none"],
  outcomes: ["succeeded", "failed", "unknown"],
};

function randomFilter(random: Random): Filter {
  const fields = Object.entries(words).filter(() => random(4) === 0);
  const some = (values: readonly string[]) => [values[random(values.length)], values[random(values.length)]];
  return parseFilter(Object.fromEntries(fields.map(([field, values]) => [field, [...new Set(some(values))]])));
}

it("finds exactly the matching events in a range, from either end, also after sessions were erased", async () => {
  await using on = await stage();
  const random = seeded(11);
  const server = scenario(vagrantShop);
  const jobs = vagrantSession("01V1", server);
  jobs.began();
  randomServer(random, server, jobs, { size: 400, firstJob: 1 });
  const events = [...randomEvents(random, 4 * blockSize), ...server.events];
  const seqs = await on.write(events);
  const end = seqs.at(-1) ?? 0;
  await projectUntil(on.databaseUrl, on.log.reader, end, { limits: { events: 333, bytes: 1e9 } });
  await using database = openDatabase({ url: on.databaseUrl, connections: 1 });
  const erasedUntil = new Map(
    events.flatMap(({ kind, session }, index) => (kind === "session.erased" ? [[session, index] as const] : [])),
  );
  const kept = events.flatMap((event, index) => {
    const isKept = event.source.startsWith("acme/") && index >= (erasedUntil.get(event.session) ?? 0);
    return isKept ? [{ event, offset: offsetOf(seqs[index] ?? 0) }] : [];
  });
  await searchAtRandom(database, kept, random, 300);
});

it("finds each event once and in order where messages have several", async () => {
  await using fresh = await freshDatabase(migrated);
  await using database = openDatabase({ url: fresh.url, connections: 1 });
  const random = seeded(12);
  const events = inMessages(randomEvents(random, 6 * blockSize), () => 1 + random([1, 3, 40, 1_024][random(4)] ?? 1));
  await applyInBatches(database, events, () => 1 + random(300));
  const ours = events.filter(({ event }) => event.source.startsWith("acme/"));
  expect(ours.filter(({ offset }) => indexOf(offset) > 0).length).toBeGreaterThan(blockSize);
  await searchAtRandom(database, ours, random, 300);
  const until = events.at(-1)?.offset ?? logStart;
  for (const newest of [true, false]) {
    const pages = await allPages(database, { after: logStart, until, limit: 37, newest });
    expect(pages).toEqual(ours.map(({ offset }) => offset));
  }
});

it("does not answer from tables of a version that did not keep all positions", async () => {
  await using fresh = await freshDatabase(migrated);
  await using database = openDatabase({ url: fresh.url, connections: 1 });
  const log = () => expect.fail("the log was asked");
  const deps: ApiDeps = { workspace: "acme", database: () => database, log, progress: new ProjectedPosition(), folds };
  const request = {
    filter: ListRequest.fromPartial({ workspace: "acme" }),
    after: endPosition("e", 0),
    until: endPosition("e", 9),
    newest: true,
  };
  await sql`insert into checkpoint (workspace, projection, epoch, position) values ('acme', 'events.2', 'e', ${endOf(9)})`.execute(
    database.db,
  );
  await expect(findEvents(deps, request)).rejects.toMatchObject({ code: "not_ready" });
  await sql`update checkpoint set projection = 'events.2 event_positions.1'`.execute(database.db);
  expect(await findEvents(deps, request)).toEqual({ positions: [], reached: endPosition("e", 9) });
});

it("finds the newest events also where a group ended with an erased session", async () => {
  await using fresh = await freshDatabase(migrated);
  await using database = openDatabase({ url: fresh.url, connections: 1 });
  // Both of alice are in one group, whose end at 20 is erased.
  await sql`
    insert into event_groups (id, source, workspace, developer, project, upstream, kind, outcome, first_position, last_position)
    values (1, 'acme/alice/shop/skaffold', 'acme', 'alice', 'shop', 'skaffold', 'build.started', '', 5 * 1024, 20 * 1024),
      (2, 'acme/bob/shop/skaffold', 'acme', 'bob', 'shop', 'skaffold', 'build.started', '', 10 * 1024, 10 * 1024)`.execute(
    database.db,
  );
  await sql`
    insert into event_positions (workspace, event_group, subject, block, session, alias, first_position, last_position, distances)
    values ('acme', 1, 'web', 1024, 'a', false, 5 * 1024, 5 * 1024, '{4096}'),
      ('acme', 2, 'web', 1024, 'b', false, 10 * 1024, 10 * 1024, '{9216}')
  `.execute(database.db);
  await sql`insert into event_blocks (workspace, first_position, events) values ('acme', 1024, 20)`.execute(
    database.db,
  );
  const range = { after: logStart, until: endOf(30), limit: 1, newest: true };
  expect(await find(database, { kinds: ["build.*"] }, range)).toEqual([offsetOf(10)]);
});

it("counts an event once that two of the subjects name", async () => {
  await using fresh = await freshDatabase(migrated);
  await using database = openDatabase({ url: fresh.url, connections: 1 });
  await sql`
    insert into event_groups (id, source, workspace, developer, project, upstream, kind, outcome, first_position, last_position)
    values (1, 'acme/alice/shop/vagrant', 'acme', 'alice', 'shop', 'vagrant', 'job.started', '', 1024, 10 * 1024)
  `.execute(database.db);
  await sql`
    insert into event_positions (workspace, event_group, subject, block, session, alias, first_position, last_position, distances)
    select 'acme', 1, case when alias then 'up' else 'job' end, seq * 1024, 's', alias, seq * 1024, seq * 1024, '{0}'
    from generate_series(1, 10::bigint) as seq cross join (values (true), (false)) as of (alias)`.execute(database.db);
  await sql`insert into event_blocks select 'acme', seq * 1024, 1 from generate_series(1, 10::bigint) as seq`.execute(
    database.db,
  );
  for (const branches of [0, 1_500]) {
    const range = { after: logStart, until: endOf(10), limit: 2, newest: true };
    const found = await find(database, { subjects: ["job", "up"] }, range, branches);
    expect(found).toEqual([offsetOf(9), offsetOf(10)]);
  }
});

const known = ["that Postgres knows", true] as const;
const unknown = ["that Postgres knows nothing about", false] as const;

it.each([known, unknown])("reads few rows of tables %s, whatever the filter", async (_, isKnown) => {
  await using fresh = await freshDatabase(migrated);
  await using database = openDatabase({ url: fresh.url, connections: 1 });
  await fill(database, 100_000);
  if (isKnown) await sql`analyze event_blocks, event_groups, event_positions`.execute(database.db);
  const until = endOf(100_000);
  const inPart = [{ after: endOf(50_000) }, { after: endOf(50_000), branches: 0 }];
  const ranges: readonly { after: Offset; branches?: number }[] = [{ after: logStart }, ...(isKnown ? inPart : [])];
  const filters: readonly Filter[] = [
    {},
    ...Object.entries(words).flatMap(([field, values]) => values.map((value) => parseFilter({ [field]: [value] }))),
    ...[{ developers: ["dev1"] }, { sources: ["dev1/shop"] }, { sessions: ["s10"] }, { projects: ["shop"] }],
    { kinds: ["build.*"], subjects: ["web"], outcomes: ["failed"] },
    { kinds: ["loop.*"], subjects: ["web"] },
    { sessions: ["s10"], kinds: ["build.failed"] },
  ];
  for (const filter of filters) {
    for (const newest of [true, false]) {
      for (const { after, branches } of ranges) {
        const before = await rowsRead(database);
        await find(database, filter, { after, until, limit: 50, newest }, branches);
        const { scans, rows } = await rowsRead(database);
        expect(scans, JSON.stringify({ filter, newest, after, branches })).toBe(before.scans);
        if (branches === undefined) expect(rows - before.rows, JSON.stringify({ filter, newest })).toBeLessThan(4_000);
      }
    }
  }
});

type Placed = Pick<RecordedEvent, "event" | "offset">;

/** Compares what is found by random filters, in random ranges, with what matches. */
async function searchAtRandom(database: Database, kept: readonly Placed[], random: Random, runs: number) {
  const last = kept.at(-1)?.offset ?? logStart;
  const anywhere = () => justBefore(offsetOf(1 + random(sequenceOf(last)), random([1, 3, 1_024][random(3)] ?? 1)));
  let found = 0;
  for (let run = 0; run < runs; run += 1) {
    const filter = randomFilter(random);
    const after = random(3) === 0 ? anywhere() : logStart;
    const until = random(3) === 0 ? anywhere() : endOf(sequenceOf(last));
    const range = { after, until, limit: 1 + random(60), newest: random(2) === 0 };
    const all = kept.filter(({ event, offset }) => offset > after && offset <= until && matches(filter, event));
    const expected = (range.newest ? all.slice(-range.limit) : all.slice(0, range.limit)).map(({ offset }) => offset);
    // With few branches the other ways of searching are taken.
    const branches = [0, 20, 1_500][random(3)];
    expect(await find(database, filter, range, branches), JSON.stringify({ filter, range, branches })).toEqual(
      expected,
    );
    found += expected.length;
  }
  expect(found).toBeGreaterThan(1_000);
}

/** Page after page to the far end of the range. */
async function allPages(database: Database, range: SearchRange): Promise<readonly Offset[]> {
  const pages: (readonly Offset[])[] = [];
  let { after, until } = range;
  for (;;) {
    const found = await find(database, {}, { ...range, after, until });
    const [first, last] = [found.at(0), found.at(-1)];
    if (first === undefined || last === undefined) break;
    pages.push(found);
    if (range.newest) until = justBefore(first);
    else after = last;
  }
  return (range.newest ? pages.toReversed() : pages).flat();
}

const find = (database: Database, filter: Filter, range: SearchRange, branches?: number) =>
  database.db.transaction().execute((tx) => {
    const request = ListRequest.fromPartial({
      workspace: "acme",
      ...(filter as Parameters<typeof ListRequest.fromPartial>[0]),
    });
    return findPositions(tx, request, range, branches);
  });

/** Messages 1 to `count` of 20 sources, 8 kinds, 5 subjects and many sessions. */
async function fill({ db }: Database, count: number): Promise<void> {
  await sql`
    create temp table told as select seq * 1024 as position, min(seq * 1024) over (partition by (seq - 1) / ${sql.lit(blockSize)}) as block,
      'acme/dev' || seq % 20 || '/shop/skaffold' as source,
      (array['build.started', 'build.succeeded', 'build.failed', 'loop.started', 'log.written', 'mirror.received',
        'test.failed', 'deploy.started'])[1 + (seq * 7919 % 97) % 8] as kind,
      (array['web', 'api', 'worker', 'cart', 'mail'])[1 + (seq * 104729 % 89) % 5] as subject, 's' || seq / 500 as session
    from generate_series(1, ${count}::bigint) as seq`.execute(db);
  const id = sql`hashtextextended(source || ' ' || kind || ' ', 0)`;
  await sql`insert into event_blocks select 'acme', block, count(*) from told group by block`.execute(db);
  await sql`
    insert into event_groups select ${id}, source, 'acme', split_part(source, '/', 2), 'shop', 'skaffold', kind,
      case when kind like '%.failed' then 'failed' else '' end, min(position), max(position)
    from told group by source, kind`.execute(db);
  await sql`
    insert into event_positions select 'acme', ${id}, subject, block, session, false, min(position), max(position),
      array_agg((position - block)::int order by position)
    from told group by source, kind, subject, block, session`.execute(db);
}

async function rowsRead({ db }: Database): Promise<{ readonly scans: number; readonly rows: number }> {
  await sql`select pg_stat_force_next_flush()`.execute(db);
  const { rows } = await sql<{ scans: number; rows: number }>`
    select seq_scan as scans, (select sum(idx_tup_read)::bigint from pg_stat_user_indexes where relid = t.relid) as rows
    from pg_stat_user_tables t where relname = 'event_positions'`.execute(db);
  return rows[0] ?? { scans: Number.NaN, rows: Number.NaN };
}
