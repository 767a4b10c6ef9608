import { parsePosition } from "@tapedeck/shared/log/position";
import { freshDatabase } from "@tapedeck/shared/testing/database";
import { sql } from "kysely";
import { expect, it } from "vitest";
import { openDatabase } from "../db/database.ts";
import { queryClient } from "../testing/client.ts";
import { logsIn } from "../testing/logs.ts";
import { migrated } from "../testing/migrated.ts";
import { randomEvents, seeded } from "../testing/random-scenario.ts";
import { projectUntil } from "../testing/run-projection.ts";
import { reaches, schemas, stage, written } from "../testing/stage.ts";
import { contents } from "../testing/tables.ts";
import { views } from "../views/views.ts";
import { rebuild } from "./rebuild.ts";

const all = views({ textRows: false });

it("builds the same tables from the log, beside a query that keeps following", async ({ signal }) => {
  await using on = await stage();
  const events = randomEvents(seeded(3), 4_500).filter(({ source }) => source.startsWith("acme/"));
  await written(on, events.slice(0, 2_000));
  await using query = await on.startQuery();
  await reaches(query, 1);

  const later = events.slice(2_000);
  const rebuilt = rebuild({
    databaseUrl: on.databaseUrl,
    logs: logsIn(on.log.reader),
    views: all,
    limits: { events: 100, bytes: 1_000_000 },
    signal,
  });
  using ask = queryClient(query.address);
  const reported: number[] = [];
  let end = 0;
  while (later.length > 0) {
    end = await written(on, later.splice(0, 50));
    reported.push(parsePosition((await ask.position()).position)?.offset ?? -1);
  }
  await rebuilt;
  expect(reported).toEqual(reported.toSorted((a, b) => a - b));
  await reaches(query, end);

  await using straight = await freshDatabase(migrated);
  await projectUntil(straight.url, on.log.reader, end);
  await projectUntil(on.databaseUrl, on.log.reader, end).catch(() => {}); // query holds the tables: it is there already
  expect(comparable(await contents(on.databaseUrl))).toEqual(comparable(await contents(straight.url)));
  expect(await schemas(on.databaseUrl)).toEqual(["tapedeck", "tapedeck_internal"]);
  await using tables = openDatabase({ url: on.databaseUrl, connections: 1 });
  const { rows } = await sql<{ known: number }>`
    select count(distinct tablename)::int as known from pg_stats where schemaname in ('tapedeck', 'tapedeck_internal')
      and tablename in ('events', 'operations', 'event_positions')`.execute(tables.db);
  expect(rows).toEqual([{ known: 3 }]);
});

/**
 * A reader that follows the log live is not given events of a session that is erased meanwhile; a later one is, and removes
 * them. So groups and blocks, which count all that was given, are not compared; the positions that remain are.
 */
function comparable({
  event_groups: _,
  event_blocks: __,
  event_positions,
  ...tables
}: Awaited<ReturnType<typeof contents>>) {
  const rows = event_positions as readonly PositionsRow[];
  const positions = rows.flatMap(({ block, distances, ...row }) =>
    distances.map((distance) => ({ ...row, first_position: 0, last_position: 0, position: Number(block) + distance })),
  );
  const texts = positions.map((row) => JSON.stringify(row)).sort();
  return { ...tables, texts };
}

type PositionsRow = { readonly block: number; readonly distances: readonly number[] };
