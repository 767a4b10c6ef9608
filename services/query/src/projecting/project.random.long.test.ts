import type { RecordedEvent } from "@tapedeck/shared/log/log";
import { endOf, logStart, offsetOf, sequenceOf, storedOffset } from "@tapedeck/shared/log/offset";
import { freshDatabase } from "@tapedeck/shared/testing/database";
import { searched, searchSeed } from "@tapedeck/shared/testing/searches";
import { until } from "@tapedeck/shared/testing/until";
import { afterAll, beforeAll, expect, it } from "vitest";
import { readCheckpoint } from "../db/checkpoint.ts";
import { openDatabase } from "../db/database.ts";
import { spawnQuery } from "../testing/child.ts";
import { acme } from "../testing/logs.ts";
import { migrated } from "../testing/migrated.ts";
import { randomEvents, seeded } from "../testing/random-scenario.ts";
import { projectUntil } from "../testing/run-projection.ts";
import { writeTogether } from "../testing/scenario.ts";
import { type Stage, stage } from "../testing/stage.ts";
import { projectAlone, streams } from "../testing/streams.ts";
import { contents, differencesOf, rows } from "../testing/tables.ts";
import { views } from "../views/views.ts";
import { applyBatch } from "./apply-batch.ts";

const seed = searchSeed;
/** Enough for rows in every table. */
const size = searched({ short: 4_500, long: 9_000 });
const random = seeded(seed);

let on: Stage;
let end: number;
/** The tables after one straight run. */
let expected: Awaited<ReturnType<typeof contents>>;

beforeAll(async () => {
  on = await stage();
  // So that batches of the projection end inside messages, too.
  const events = randomEvents(random, size);
  end = sequenceOf((await on.writeTogether(events, 5)).at(-1) ?? logStart);
  await using straight = await freshDatabase(migrated);
  await projectUntil(straight.url, on.log.reader, end);
  expected = await contents(straight.url);
});

afterAll(() => on[Symbol.asyncDispose]());

it(`fills every table (seed ${seed})`, () => {
  // Retention fills it, and no event does.
  const byEvents = Object.entries(expected).filter(([table]) => table !== "expired_builds");
  const empty = byEvents.filter(([, found]) => found.length === 0);
  expect(empty.map(([table]) => table)).toEqual([]);
});

it(`writes the same tables however the log is cut into batches (seed ${seed})`, async () => {
  await using database = await freshDatabase(migrated);
  for (let next = 0; next < end; ) {
    next = Math.min(end, next + 1 + random(600));
    await projectUntil(database.url, on.log.reader, next, {
      limits: { events: 1 + random(60), bytes: 1_000_000 },
    });
  }
  expect(differencesOf(await contents(database.url), expected)).toEqual([]);
});

it("writes the same tables whatever the plans are", async () => {
  await using database = await freshDatabase(migrated);
  // Merge joins give rows in another order.
  const url = new URL(database.url);
  url.searchParams.set("options", "-c enable_nestloop=off -c enable_hashjoin=off");
  await projectUntil(url.href.replaceAll("+", "%20"), on.log.reader, end);
  expect(differencesOf(await contents(database.url), expected)).toEqual([]);
});

it("changes nothing when events are delivered again", async () => {
  await using database = await freshDatabase(migrated);
  await projectUntil(database.url, on.log.reader, end);
  await using tables = openDatabase({ url: database.url });
  const events = await Array.fromAsync(
    on.log.reader.history({ afterOffset: logStart, subjects: [] }, endOf(end), new AbortController().signal),
  );
  const { epoch = "", projection = "" } = (await readCheckpoint(tables.db, acme)) ?? {};
  const again = { events: events.filter(isOfAcme).slice(-1_000) };
  const applied = await tables.db.transaction().execute((tx) =>
    applyBatch(tx, views({ textRows: false }), again, {
      workspace: acme,
      after: logStart,
      epoch,
      projection,
      log: on.log.reader,
    }),
  );
  expect(applied).toMatchObject({ events: 0, position: endOf(end) });
  expect(differencesOf(await contents(database.url), expected)).toEqual([]);
});

it("keeps the latest recording time when the log's clock is set back", async () => {
  await using database = await freshDatabase(migrated);
  await projectUntil(database.url, on.log.reader, end);
  await using tables = openDatabase({ url: database.url });
  const all = await Array.fromAsync(
    on.log.reader.history({ afterOffset: logStart, subjects: [] }, endOf(end), new AbortController().signal),
  );
  const last = all.findLast(isOfAcme);
  const before = await readCheckpoint(tables.db, acme);
  if (last === undefined || before === undefined) throw new Error("nothing was projected");
  expect(before).toMatchObject({ applied_position: last.offset, recorded_until_ms: last.recordedAt.getTime() });
  const next = { ...last, offset: offsetOf(end + 1), recordedAt: new Date(last.recordedAt.getTime() - 60_000) };
  await tables.db
    .transaction()
    .execute((tx) => applyBatch(tx, [], { events: [next] }, { ...before, after: endOf(end), log: on.log.reader }));
  expect(await readCheckpoint(tables.db, acme)).toEqual({
    ...before,
    position: offsetOf(end + 1),
    applied_position: offsetOf(end + 1),
  });
});

function isOfAcme({ event }: RecordedEvent): boolean {
  return event.source.startsWith(`${acme}/`);
}

// Dozens of starts.
it.each([seed])(
  "writes the same tables of several workspaces when query is killed repeatedly (seed %i)",
  async (seed) => {
    await using own = await stage();
    const events = Map.groupBy(randomEvents(seeded(seed), size), ({ source }) => source.split("/")[0] ?? "");
    await using logs = await streams(own, [...events.keys()]);
    for (const [workspace, some] of events) await writeTogether(logs.log(workspace), some, 5);
    const all = new Map([...events.keys()].map((workspace) => [workspace, logs.log(workspace)]));
    await projectAlone(own.databaseUrl, all);
    const alone = await contents(own.databaseUrl);
    const bounds = await Promise.all([...all.values()].map(({ reader }) => reader.bounds()));
    const total = bounds.reduce((sum, { lastOffset }) => sum + sequenceOf(lastOffset), 0);
    // On a slow machine a kill may come late, when nearly all is written: then once more, from the beginning.
    for (let kills = 0; kills <= 3; ) {
      await using database = await freshDatabase(migrated);
      kills = await projectUnderKills(own, database.url, total);
      expect(differencesOf(await contents(database.url), alone)).toEqual([]);
    }
  },
  600_000,
);

/** Starts query and kills it again and again until all messages are written; resolves with how often that was. */
async function projectUnderKills(own: Stage, databaseUrl: string, total: number): Promise<number> {
  await using tables = openDatabase({ url: databaseUrl, connections: 1 });
  // Whole messages, of all workspaces together.
  const written = async () => {
    const found = await rows(tables, "checkpoint").catch(() => []);
    const offsets = found.map((row) => storedOffset(Number(row.position)));
    return offsets.reduce((sum, offset) => {
      const seq = sequenceOf(offset);
      return sum + (offset === endOf(seq) ? seq : seq - 1);
    }, 0);
  };
  const inSmallBatches = { ...own, config: { ...own.config, databaseUrl, batchEvents: 40 } };
  let kills = 0;
  for (let from = 0; from < total; from = await written()) {
    const goal = Math.min(total, from + 1 + random(600));
    const query = spawnQuery(inSmallBatches);
    try {
      await until(async () => (await written()) >= goal, { message: `${goal} messages to be written, after ${from}` });
    } finally {
      await query.kill();
    }
    kills += 1;
  }
  return kills;
}
