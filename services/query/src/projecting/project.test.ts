import { endOf, logStart, type Offset, offsetOf, sequenceOf } from "@tapedeck/shared/log/offset";
import { sql } from "kysely";
import { expect, it } from "vitest";
import { readCheckpoint } from "../db/checkpoint.ts";
import { openDatabase } from "../db/database.ts";
import { acme } from "../testing/logs.ts";
import { randomEvents, seeded } from "../testing/random-scenario.ts";
import { projectUntil } from "../testing/run-projection.ts";
import { stage } from "../testing/stage.ts";
import type { View } from "../views/view.ts";
import { applyBatch } from "./apply-batch.ts";

it("applies nothing of a batch that fails at its end, nor of the batches begun behind it", async () => {
  await using on = await stage();
  await using tables = openDatabase({ url: on.databaseUrl, connections: 1 });
  await sql`create table marks (n bigint)`.execute(tables.db);
  // A failure that is no event's fault, and that comes when everything is written.
  await sql`
    create function refuse() returns trigger language plpgsql as $$ begin
      if (select count(*) from marks where n = new.n) > 1 then
        raise exception 'no space is left' using errcode = 'disk_full';
      end if;
      return null;
    end $$`.execute(tables.db);
  await sql`
    create constraint trigger refuse after insert on marks deferrable initially deferred
    for each row execute function refuse()`.execute(tables.db);
  const events = randomEvents(seeded(9), 150).filter(({ source }) => source.startsWith(`${acme}/`));
  const offsets = (await on.write(events)).map((seq) => offsetOf(seq));
  const end = sequenceOf(offsets.at(-1) ?? logStart);
  let spoiled = 42;
  const marks: View = {
    name: "marks",
    version: 1,
    sessionTables: [],
    async apply(tx, batch) {
      const given = batch.map(({ offset }) => offset);
      const again = given.filter((offset) => offset === offsetOf(spoiled));
      await sql`insert into marks select * from unnest(${[...given, ...again]}::bigint[])`.execute(tx);
    },
  };
  const marked = async () => (await sql<{ n: Offset }>`select n from marks order by n`.execute(tables.db)).rows;
  const options = { views: [marks], limits: { events: 10, bytes: 1e9 } };

  await expect(projectUntil(on.databaseUrl, on.log.reader, end, options)).rejects.toThrow("no space is left");
  // At most 9 events before the spoiled one are in its batch. On a busy machine batches are smaller.
  const applied = (await readCheckpoint(tables.db, acme))?.applied_position ?? logStart;
  expect(applied).toBeGreaterThanOrEqual(offsetOf(32));
  expect(applied).toBeLessThan(offsetOf(42));
  expect((await marked()).map(({ n }) => n)).toEqual(offsets.filter((offset) => offset <= applied));

  spoiled = 0;
  await projectUntil(on.databaseUrl, on.log.reader, end, options);
  expect((await marked()).map(({ n }) => n)).toEqual(offsets);
});

it("rolls a batch back only when all of its views have ended, so that none writes behind the rollback", async () => {
  await using on = await stage();
  await using tables = openDatabase({ url: on.databaseUrl, connections: 1 });
  await sql`create table marks (n bigint)`.execute(tables.db);
  const end = (await on.write(randomEvents(seeded(9), 10))).at(-1) ?? 0;
  let hasEnded = false;
  const slow: View = {
    name: "slow",
    version: 1,
    sessionTables: [],
    async apply(tx) {
      for (let n = 0; n < 20; n++) await sql`select 1`.execute(tx);
      await sql`insert into marks values (1)`.execute(tx);
      hasEnded = true;
    },
  };
  const wrong: View = {
    name: "wrong",
    version: 1,
    sessionTables: [],
    apply: () => Promise.reject(new Error("this view is wrong")),
  };
  await projectUntil(on.databaseUrl, on.log.reader, end, { views: [slow, wrong] });
  expect(hasEnded).toBe(true);
  const { rows: refused } = await sql`select distinct error from set_aside_events`.execute(tables.db);
  expect(refused).toEqual([{ error: "this view is wrong" }]);
  expect((await sql`select n from marks`.execute(tables.db)).rows).toEqual([]);
});

it("keeps the latest time, also when the clock of the log is set back", async () => {
  await using on = await stage();
  await using tables = openDatabase({ url: on.databaseUrl, connections: 1 });
  const end = (await on.write(randomEvents(seeded(9), 10))).at(-1) ?? 0;
  await projectUntil(on.databaseUrl, on.log.reader, end);
  const before = await readCheckpoint(tables.db, acme);
  const signal = AbortSignal.timeout(60_000);
  const [first] = await Array.fromAsync(
    on.log.reader.history({ afterOffset: logStart, subjects: [] }, endOf(1), signal),
  );
  if (before === undefined || first === undefined) throw new Error("nothing was projected");
  const latest = new Date(Date.now() + 60_000);
  const late = { ...first, offset: offsetOf(end + 1), recordedAt: latest };
  const early = { ...first, offset: offsetOf(end + 2), recordedAt: new Date(0) };
  const start = { ...before, after: endOf(end), log: on.log.reader };
  await tables.db.transaction().execute((tx) => applyBatch(tx, [], { events: [late, early] }, start));
  expect(await readCheckpoint(tables.db, acme)).toMatchObject({ recorded_until_ms: latest.getTime() });
});
