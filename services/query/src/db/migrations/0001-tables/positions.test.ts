import { endOf, offsetOf } from "@tapedeck/shared/log/offset";
import { formatPosition } from "@tapedeck/shared/log/position";
import { freshDatabase } from "@tapedeck/shared/testing/database";
import { seeded } from "@tapedeck/shared/testing/seeded";
import { sql } from "kysely";
import { expect, it } from "vitest";
import { migrated } from "../../../testing/migrated.ts";
import { openDatabase } from "../../database.ts";

const epoch = "t3k9x2";

it("position_text writes a position as the API does", async () => {
  await using fresh = await freshDatabase(migrated);
  await using database = openDatabase({ url: fresh.url, connections: 1 });
  await database.db
    .insertInto("workspaces")
    .values([
      { workspace: "acme", epoch },
      { workspace: "globex", epoch: "other1" },
    ])
    .execute();
  const random = seeded("position texts");
  const offsets = Array.from({ length: 5_000 }, (_, index) => {
    const sequence = index < 2_000 ? index : 2 ** random.below(43) + random.below(2 ** random.below(31));
    return [offsetOf(sequence), offsetOf(sequence, random.below(1_024)), endOf(sequence)];
  }).flat();
  const { rows } = await sql<{ text: string }>`
    select position_text(log_offset, 'acme') as text from unnest(${offsets.map(String)}::bigint[]) with ordinality as t (log_offset, nth)
    order by nth`.execute(database.db);
  expect(rows.map(({ text }) => text)).toEqual(offsets.map((offset) => formatPosition({ epoch, offset })));
  const { rows: others } = await sql`
    select position_text(${offsetOf(1)}, 'globex') as known, position_text(${offsetOf(1)}, 'initech') as unknown`.execute(
    database.db,
  );
  expect(others).toEqual([{ known: formatPosition({ epoch: "other1", offset: offsetOf(1) }), unknown: null }]);
});
