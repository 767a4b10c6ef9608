import type { LogReader, RecordedEvent } from "@tapedeck/shared/log/log";
import { endOf, type Offset, offsetOf, sequenceOf } from "@tapedeck/shared/log/offset";
import { sourceName } from "@tapedeck/shared/source";
import { sql } from "kysely";
import { expect, it } from "vitest";
import { openDatabase } from "../db/database.ts";
import { queryClient } from "../testing/client.ts";
import { logsIn } from "../testing/logs.ts";
import { randomEvents, seeded } from "../testing/random-scenario.ts";
import { projectUntil } from "../testing/run-projection.ts";
import { scenario } from "../testing/scenario.ts";
import { reaches, stage, written } from "../testing/stage.ts";
import { contents, differencesOf, rows } from "../testing/tables.ts";
import type { View } from "../views/view.ts";
import { views } from "../views/views.ts";
import { rebuild } from "./rebuild.ts";
import { listedAtEachEnd, maxListedSessions, readSetAside, recordSetAside } from "./set-aside.ts";

const all = views({ textRows: false });

/** A view that can't apply some events, and counts how often it was tried. */
function refusing(isRefused: (recorded: RecordedEvent) => "by Postgres" | "by the view" | undefined) {
  const tried = { batches: 0 };
  const view: View = {
    name: "refusing",
    version: 1,
    sessionTables: [],
    async apply(tx, batch) {
      tried.batches += 1;
      const how = batch.map(isRefused).find((one) => one !== undefined);
      if (how === "by the view") throw new RangeError("this view can't apply it");
      if (how === "by Postgres") await sql`select 1 / 0`.execute(tx);
    },
  };
  return { view, tried };
}

/** The same log without these events. */
function without(log: LogReader, isLeftOut: (offset: Offset) => boolean): LogReader {
  return {
    ...log,
    async *follow(from, options) {
      for await (const recorded of log.follow(from, options)) if (!isLeftOut(recorded.offset)) yield recorded;
    },
  };
}

it("sets aside what can't be applied, and applies everything else as if that had not been recorded", async ({
  signal,
}) => {
  await using on = await stage();
  await using other = await stage();
  const random = seeded(31);
  const end = await written(on, randomEvents(random, 400));
  const bad = new Map<Offset, "by Postgres" | "by the view">();
  const known = new Map<Offset, RecordedEvent>();
  for await (const recorded of on.log.reader.history({ afterOffset: 0 as Offset, subjects: [] }, endOf(end), signal)) {
    known.set(recorded.offset, recorded);
    // Single ones, some beside each other, and a run of them. Marks of erased sessions are tried below.
    const isBad = random(40) === 0 || (bad.has([...known.keys()].at(-2) ?? recorded.offset) && random(3) === 0);
    const isRun = known.size > 200 && known.size < 240;
    if ((isBad || isRun) && recorded.event.kind !== "session.erased")
      bad.set(recorded.offset, random(2) === 0 ? "by Postgres" : "by the view");
  }
  expect(bad.size).toBeGreaterThan(50);

  const { view } = refusing(({ offset }) => bad.get(offset));
  const limits = { events: 100, bytes: 1e9 };
  await projectUntil(on.databaseUrl, on.log.reader, end, { views: [...all, view], limits });
  const none = refusing(() => undefined).view;
  await projectUntil(
    other.databaseUrl,
    without(on.log.reader, (offset) => bad.has(offset)),
    end,
    {
      views: [...all, none],
      limits,
    },
  );
  const expectSame = async () => {
    const [{ checkpoint: at, ...found }, { checkpoint: there, ...expected }] = [
      await contents(on.databaseUrl),
      await contents(other.databaseUrl),
    ];
    expect(differencesOf(found, expected)).toEqual([]);
    const positions = (there as { workspace: string; position: Offset }[]).map(({ workspace, position }) => ({
      workspace,
      position,
    }));
    expect(at).toMatchObject(positions);
  };
  await expectSame();
  await using tables = openDatabase({ url: on.databaseUrl, connections: 1 });
  const expectListed = async () =>
    expect(await rows(tables, "set_aside_events", "position")).toMatchObject(
      [...bad].map(([position, how]) => ({
        position,
        source: known.get(position)?.event.source,
        kind: known.get(position)?.event.kind,
        ...(how === "by Postgres"
          ? { error_code: "22012", error: "division by zero" }
          : { error_code: "RangeError", error: "this view can't apply it" }),
      })),
    );
  await expectListed();

  // A rebuild tries them again, and does not stop at them either.
  const options = { databaseUrl: on.databaseUrl, logs: logsIn(on.log.reader), limits, signal };
  expect(await rebuild({ ...options, views: [...all, view] })).toBe(true);
  await expectSame();
  await using rebuilt = openDatabase({ url: on.databaseUrl, connections: 1 });
  expect((await rows(rebuilt, "set_aside_events")).length).toBe(bad.size);
  expect(await rebuild({ ...options, views: [...all, none] })).toBe(true);
  await using whole = openDatabase({ url: on.databaseUrl, connections: 1 });
  expect(await rows(whole, "set_aside_events")).toEqual([]);
});

it("tries each event of a long run once, and lists the first and the last ones of each source", async () => {
  await using on = await stage();
  const flood = scenario(sourceName({ workspace: "acme", developer: "eve", project: "shop", upstream: "skaffold" }));
  const quiet = scenario();
  const events = Array.from({ length: 300 }, () => flood.add({ kind: "source.added" }));
  const end = await written(on, [quiet.add({ kind: "source.added" }), ...events, quiet.add({ kind: "source.added" })]);
  const { view, tried } = refusing(({ event }) => (event.source === flood.source ? "by Postgres" : undefined));
  await projectUntil(on.databaseUrl, on.log.reader, end, { views: [...all, view] });
  // The whole of each batch, its halves down to one event, and then each event by itself.
  expect(tried.batches).toBeLessThan(300 + 4 * 20 + 20);

  await using tables = openDatabase({ url: on.databaseUrl, connections: 1 });
  const [found] = await rows(tables, "set_aside_sources");
  const listed = await rows(tables, "set_aside_events", "position");
  expect(found).toMatchObject({ source: flood.source, workspace: "acme", events: 300 });
  expect(listed.length).toBe(2 * listedAtEachEnd);
  expect(listed.at(0)?.position).toBe(found?.first_position);
  expect(listed.at(-1)?.position).toBe(found?.last_position);
  expect(Number(found?.unlisted_first_position)).toBeGreaterThan(Number(listed[listedAtEachEnd - 1]?.position));
  expect(Number(found?.unlisted_last_position)).toBeLessThan(Number(listed[listedAtEachEnd]?.position));
  expect((await rows(tables, "sources")).map(({ source }) => source)).toEqual([quiet.source]);
});

it("lists no more than 1,000 sessions of a source, however many it begins", async () => {
  await using on = await stage();
  await using tables = openDatabase({ url: on.databaseUrl, connections: 1 });
  const script = scenario();
  const refused = Array.from({ length: 3_000 }, (_, at) => {
    const event = script.add({ kind: "source.added", session: `s${at}` });
    return {
      recorded: { event, subject: "", offset: offsetOf(at + 1), recordedAt: new Date(0) },
      error: new Error("refused"),
    };
  });
  for (const part of [refused.slice(0, 1_500), refused.slice(1_500)]) {
    await tables.db.transaction().execute((tx) => recordSetAside(tx, part));
    expect(await rows(tables, "set_aside_events")).toHaveLength(maxListedSessions + listedAtEachEnd);
  }
  expect(await rows(tables, "set_aside_sources")).toMatchObject([{ events: 3_000 }]);
});

it("erases the session of a mark that can't be applied, and what was set aside of it", async () => {
  await using on = await stage();
  const script = scenario();
  const session = script.session("s1");
  session.started();
  session.configured();
  session.loopStarted();
  const refused = script.events.length;
  session.build("web", "started");
  const kept = script.session("s2");
  kept.started();
  // Recorded together with the mark after it.
  session.build("api", "started");
  script.add({ kind: "session.erased", session: "s1", subject: "s1" });
  const seqs = await on.write(script.events);
  const bad = [seqs[refused], seqs.at(-2), seqs.at(-1)];
  const { view } = refusing(({ offset }) => (bad.includes(sequenceOf(offset)) ? "by Postgres" : undefined));
  await projectUntil(on.databaseUrl, on.log.reader, seqs.at(-1) ?? 0, { views: [...all, view] });
  await using tables = openDatabase({ url: on.databaseUrl, connections: 1 });
  expect((await rows(tables, "sessions")).map((row) => row.session)).toEqual(["s2"]);
  expect(await rows(tables, "events", "position")).toMatchObject([{ session: "s2" }]);
  const mark = offsetOf(seqs.at(-1) ?? 0);
  expect(await rows(tables, "set_aside_events")).toMatchObject([{ position: mark, kind: "session.erased" }]);
  expect(await rows(tables, "set_aside_sources")).toMatchObject([
    { events: 1, first_position: mark, last_position: mark },
  ]);
});

it("counts no set-aside event of an erased session, also where not all of them were listed", async () => {
  await using on = await stage();
  const script = scenario();
  const session = script.session("s1");
  session.started();
  const begin = script.events.length;
  for (let n = 0; n < 3 * listedAtEachEnd; n++) session.configured();
  const other = script.session("s2");
  other.started();
  other.configured();
  const erased = async (id: string) => {
    const mark = scenario();
    mark.add({ kind: "session.erased", session: id, subject: id });
    return (await on.write(mark.events)).at(-1) ?? 0;
  };
  const seqs = await on.write(script.events);
  const bad = new Set([...seqs.slice(begin, -2), seqs.at(-1)]);
  const { view } = refusing(({ offset }) => (bad.has(sequenceOf(offset)) ? "by Postgres" : undefined));
  const project = (until: number) => projectUntil(on.databaseUrl, on.log.reader, until, { views: [...all, view] });
  await project(seqs.at(-1) ?? 0);
  await using tables = openDatabase({ url: on.databaseUrl, connections: 1 });
  const sources = () => rows(tables, "set_aside_sources");
  const last = offsetOf(seqs.at(-1) ?? 0);
  expect(await sources()).toMatchObject([{ events: 3 * listedAtEachEnd + 1, last_position: last }]);
  // Only the range that is not listed may still have some of the session.
  await project(await erased("s1"));
  expect(await sources()).toMatchObject([{ last_position: last }]);
  expect(await rows(tables, "set_aside_events")).toMatchObject([{ session: "s2" }]);
  await project(await erased("s2"));
  expect(await sources()).toEqual([]);
  expect(await rows(tables, "set_aside_events")).toEqual([]);
});

it("counts the others of a source when a session with set-aside events is erased", async () => {
  await using on = await stage();
  const script = scenario();
  for (const id of ["s1", "s2", "s1"]) script.session(id).configured();
  script.add({ kind: "session.erased", session: "s1", subject: "s1" });
  const seqs = await on.write(script.events);
  const { view } = refusing(({ event }) => (event.kind === "session.erased" ? undefined : "by Postgres"));
  await projectUntil(on.databaseUrl, on.log.reader, seqs.at(-1) ?? 0, { views: [...all, view] });
  await using tables = openDatabase({ url: on.databaseUrl, connections: 1 });
  const position = offsetOf(seqs[1] ?? 0);
  expect(await rows(tables, "set_aside_sources")).toMatchObject([
    { events: 1, first_position: position, last_position: position },
  ]);
  expect(await readSetAside(tables.db, { limit: 1 })).toMatchObject([{ error: "division by zero" }]);
});

it("sets aside what a deferred trigger on the tables refuses at the commit, and applies the rest", async () => {
  await using on = await stage();
  await using tables = openDatabase({ url: on.databaseUrl, connections: 1 });
  await sql`create function public.refuse() returns trigger language plpgsql as $$ begin
    if new.session = 's1' then raise exception 'not this one'; end if; return null; end $$`.execute(tables.db);
  await sql`create constraint trigger refuse after insert on sessions deferrable initially deferred
    for each row execute function public.refuse()`.execute(tables.db);
  const script = scenario();
  for (const id of ["s1", "s2"]) script.session(id).started();
  const seqs = await on.write(script.events);
  await projectUntil(on.databaseUrl, on.log.reader, seqs.at(-1) ?? 0, { views: all });
  expect((await rows(tables, "sessions")).map(({ session }) => session)).toEqual(["s2"]);
  expect(await rows(tables, "set_aside_events")).toMatchObject([{ session: "s1", error: "not this one" }]);
});

it.each(["", " deferrable initially deferred"])(
  "applies everything after an erasure that a foreign key%s of somebody else's table blocks",
  async (deferred) => {
    await using on = await stage();
    await using tables = openDatabase({ url: on.databaseUrl, connections: 1 });
    const script = scenario();
    for (const id of ["s1", "s2"]) script.session(id).started();
    const written = await on.write(script.events);
    const none = refusing(() => undefined).view;
    await projectUntil(on.databaseUrl, on.log.reader, written.at(-1) ?? 0, { views: [...all, none] });
    await sql`create table public.marks (session text references tapedeck.sessions${sql.raw(deferred)})`.execute(
      tables.db,
    );
    await sql`insert into public.marks values ('s1')`.execute(tables.db);

    const more = scenario();
    const before = more.session("s3");
    before.started();
    for (const id of ["s1", "s2"]) more.add({ kind: "session.erased", session: id, subject: id });
    const bad = more.events.length;
    before.configured();
    more.session("s4").started();
    const seqs = await on.write(more.events);
    const marks = [seqs[1], seqs[2]];
    // Another mark beside it, which a view refuses, still erases its session.
    const { view } = refusing(({ offset }) =>
      [seqs[2], seqs[bad]].includes(sequenceOf(offset)) ? "by Postgres" : undefined,
    );
    await projectUntil(on.databaseUrl, on.log.reader, seqs.at(-1) ?? 0, { views: [...all, view] });
    expect((await rows(tables, "sessions", "session")).map((row) => row.session)).toEqual(["s1", "s3", "s4"]);
    const listed = await rows(tables, "set_aside_events", "position");
    expect(listed.map(({ position, error_code }) => [sequenceOf(position as Offset), error_code])).toEqual([
      [marks[0], "23503"],
      [marks[1], "22012"],
      [seqs[bad], "22012"],
    ]);
    expect(listed[0]?.error).toContain("marks_session_fkey");
  },
);

it("refuses no event because an earlier one can't be recorded as set aside", async () => {
  await using on = await stage();
  await using tables = openDatabase({ url: on.databaseUrl, connections: 1 });
  await sql`create sequence public.tries`.execute(tables.db);
  await sql`create function public.refuse() returns trigger language plpgsql as $$ begin
    raise exception 'not recorded at try %', nextval('public.tries'); end $$`.execute(tables.db);
  await sql`create trigger refuse before insert on set_aside_events execute function public.refuse()`.execute(
    tables.db,
  );
  const script = scenario();
  for (let n = 0; n < 200; n++) script.add({ kind: "source.added" });
  const [first = 0, ...others] = await on.write(script.events);
  const { view } = refusing(({ offset }) => (sequenceOf(offset) === first ? "by Postgres" : undefined));
  const projected = projectUntil(on.databaseUrl, on.log.reader, others.at(-1) ?? 0, { views: [...all, view] });
  await expect(projected).rejects.toThrow("not recorded at try 1");
});

it("sets nothing aside while the connection, the disk or the tables fail", async () => {
  await using on = await stage();
  const end = await written(on, randomEvents(seeded(9), 20));
  const failing = (statement: string): View => ({
    name: "failing",
    version: 1,
    sessionTables: [],
    apply: async (tx) => void (await sql.raw(statement).execute(tx)),
  });
  const raise = (state: string) => `do $$ begin raise exception 'as it is' using errcode = '${state}'; end $$`;
  const failures = [
    "select pg_terminate_backend(pg_backend_pid())",
    "select from no_such_table",
    ...["40001", "40P01", "53100", "53200", "55P03", "57014", "57P01", "58030", "XX000", "XX001"].map(raise),
  ];
  await using tables = openDatabase({ url: on.databaseUrl, connections: 1 });
  for (const statement of failures) {
    const projected = projectUntil(on.databaseUrl, on.log.reader, end, { views: [...all, failing(statement)] });
    await expect(projected, statement).rejects.toThrow();
  }
  expect(await rows(tables, "set_aside_events")).toEqual([]);
  expect(await rows(tables, "events", "position")).toEqual([]);
});

it("says what was set aside to its workspace and to operators, stays ready, and still finds it in the log", async () => {
  await using on = await stage();
  await using query = await on.startQuery();
  using ask = queryClient(query.address);
  await using tables = openDatabase({ url: on.databaseUrl, connections: 1 });
  await sql`alter table operations add constraint no_bad check (subject <> 'bad')`.execute(tables.db);
  const script = scenario();
  const session = script.session("s1");
  session.started();
  session.configured();
  session.loopStarted();
  const refused = script.events.length;
  session.build("bad", "started");
  session.build("web", "started");
  const seqs = await on.write(script.events);
  await reaches(query, seqs.at(-1) ?? 0);
  const position = on.at(seqs[refused] ?? 0);

  const reason = 'new row for relation "operations" violates check constraint "no_bad"';
  const told = { source: script.source, events: 1n, error_code: "23514", error: reason };
  const expected = [{ ...told, first_position: position, last_position: position }];
  expect((await ask.setAside("acme")).sources).toMatchObject(expected);
  expect((await ask.setAside("")).sources).toMatchObject(expected);
  expect((await ask.setAside("globex")).sources).toEqual([]);
  const health = `http://${query.addresses.health}`;
  const ready = await fetch(`${health}/readyz`);
  expect([ready.status, await ready.json()]).toMatchObject([
    200,
    { details: { setAside: [{ source: script.source, events: 1 }], warnings: [expect.stringContaining(reason)] } },
  ]);
  const metrics = await (await fetch(`${health}/metrics`)).text();
  expect(metrics).toMatch(/^tapedeck_query_set_aside_events\{.*source="acme\/alice\/shop\/skaffold".*\} 1$/m);

  const found = async (kinds: string[], newest = false) =>
    (
      await ask.findEvents({
        filter: { kinds, limit: 2 },
        newest,
        after: on.endAt(0),
        until: on.endAt(seqs.at(-1) ?? 0),
      })
    ).positions;
  const [first, last] = [seqs[refused] ?? 0, seqs[refused + 1] ?? 0].map(on.at);
  expect(await found(["build.started"])).toEqual([first, last]);
  expect(await found(["build.started"], true)).toEqual([first, last]);
  // Where not all of them are listed, the log has to be searched.
  await sql`update set_aside_sources set unlisted_first_position = first_position, unlisted_last_position = last_position`.execute(
    tables.db,
  );
  await expect(found(["build.started"])).rejects.toMatchObject({ code: "not_ready" });
});
