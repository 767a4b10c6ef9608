import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import type { RecordedEvent } from "@tapedeck/shared/log/log";
import { offsetOf } from "@tapedeck/shared/log/offset";
import { freshDatabase } from "@tapedeck/shared/testing/database";
import { sql } from "kysely";
import { expect, it } from "vitest";
import { openDatabase } from "../../db/database.ts";
import { migrated } from "../../testing/migrated.ts";
import { applyInBatches, inMessages } from "../../testing/positions.ts";
import { randomEvents, seeded } from "../../testing/random-scenario.ts";
import { blockSize } from "./blocks.ts";

type Kept = { readonly name: string; readonly positions: readonly number[]; readonly blocks: readonly number[] };

/** The rows of the index of these events: whose positions a row has, and which. */
async function rowsOf(events: readonly RecordedEvent[], size: () => number): Promise<readonly Kept[]> {
  await using fresh = await freshDatabase(migrated);
  await using database = openDatabase({ url: fresh.url, connections: 1 });
  await applyInBatches(database, events, size);
  const { rows } = await sql<Kept>`
    select concat_ws(' ', event_group, subject, session, alias) as name,
      array(select block + distance from unnest(distances) as distance)::text[]::float8[] as positions,
      array[block, first_position, last_position]::text[]::float8[] as blocks
    from event_positions order by block, 1`.execute(database.db);
  return rows;
}

const events: readonly Event[] = randomEvents(seeded(13), 8 * blockSize);

it("takes as many rows for events that share messages as for events that do not", async () => {
  const cost = async (perMessage: number) => {
    const rows = await rowsOf(
      inMessages(events, () => perMessage),
      () => 1_000,
    );
    return rows.map(({ name, positions }) => ({ name, positions: positions.length }));
  };
  const single = await cost(1);
  expect(single.length).toBeLessThan(events.length / 3);
  expect(await cost(1_024)).toEqual(single);
  expect(await cost(7)).toEqual(single);
});

it("writes the same rows however the log is cut into batches", async () => {
  const random = seeded(14);
  const recorded = inMessages(events.slice(0, 3 * blockSize), () => 1 + random(1_024));
  const expected = await rowsOf(recorded, () => recorded.length);
  expect(await rowsOf(recorded, () => 1 + random(20))).toEqual(expected);
});

it("keeps positions that are far from each other, because all between them has expired", async () => {
  const sequences = [1, 2, 2 ** 21, 2 ** 21 + 1, 2 ** 40, 2 ** 43 - 1];
  const recorded = inMessages(events.slice(0, sequences.length), () => 1).map((one, index) => ({
    ...one,
    offset: offsetOf(sequences[index] ?? 0, 1_023),
  }));
  const rows = await rowsOf(recorded, () => 2);
  const kept = rows.filter(({ name }) => name.endsWith(" f")).flatMap(({ positions }) => positions);
  expect(kept.toSorted((a, b) => a - b)).toEqual(recorded.map(({ offset }) => offset));
});
