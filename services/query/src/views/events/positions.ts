import type { RecordedEvent } from "@tapedeck/shared/log/log";
import type { Offset } from "@tapedeck/shared/log/offset";
import { type SourceName, sourceParts } from "@tapedeck/shared/source";
import { sql } from "kysely";
import { key } from "../../db/text.ts";
import type { View } from "../view.ts";
import { blocksFrom, eventBlocks } from "./blocks.ts";
import { groupId, groupName, groupOf } from "./groups.ts";

type PositionRow = {
  readonly group: string;
  readonly subject: string;
  /** Where it begins. */
  readonly block: Offset;
  readonly session: string;
  readonly alias: boolean;
  /** Ascending, from the beginning of the block. */
  readonly distances: number[];
};

/**
 * The positions of all events, text and mirrors too. Events of one group, subject and session share a row per block, so
 * that there are far fewer rows than events.
 */
export const eventPositions: View = {
  name: "event_positions",
  version: 1,
  sessionTables: ["event_positions"],
  after: [eventBlocks],
  async apply(tx, batch) {
    const [first] = batch;
    if (first === undefined) return;
    const { workspace } = sourceParts(first.event.source as SourceName);
    const rows = rowsOf(batch, await blocksFrom(tx, workspace, first.offset));
    const firsts = rows.map(({ block, distances }) => block + (distances[0] ?? 0));
    const lasts = rows.map(({ block, distances }) => block + (distances.at(-1) ?? 0));
    await sql`
      insert into event_positions (workspace, event_group, subject, block, session, alias, first_position, last_position, distances)
      select ${workspace}, ${groupId(sql`name`)}, subject, block, session, alias, first, last, distances::int[]
      from unnest(
        ${rows.map(({ group }) => group)}::text[], ${rows.map(({ subject }) => subject)}::text[],
        ${rows.map(({ block }) => block)}::bigint[], ${rows.map(({ session }) => session)}::text[],
        ${rows.map(({ alias }) => alias)}::boolean[], ${firsts}::bigint[], ${lasts}::bigint[],
        ${rows.map(({ distances }) => `{${distances}}`)}::text[]
      ) as given (name, subject, block, session, alias, first, last, distances)
      on conflict (event_group, subject, block, session, alias) do update
      set last_position = excluded.last_position, distances = event_positions.distances || excluded.distances
    `.execute(tx);
  },
};

function rowsOf(batch: readonly RecordedEvent[], blocks: readonly Offset[]): readonly PositionRow[] {
  const rows = new Map<string, PositionRow>();
  let index = 0;
  for (const { event, offset } of batch) {
    while (index + 1 < blocks.length && (blocks[index + 1] ?? 0) <= offset) index += 1;
    const block = blocks[index] ?? offset;
    const group = groupName(groupOf(event));
    const subject = key(event.subject);
    const operation = key(event.operation?.subject ?? "");
    add(rows, { group, subject, block, session: event.session, alias: false }, offset);
    if (operation !== "" && operation !== subject) {
      add(rows, { group, subject: operation, block, session: event.session, alias: true }, offset);
    }
  }
  return [...rows.values()];
}

function add(rows: Map<string, PositionRow>, row: Omit<PositionRow, "distances">, offset: Offset): void {
  const name = [row.group, row.block, row.alias, row.session, row.subject].join("\0");
  const known = rows.get(name);
  if (known === undefined) rows.set(name, { ...row, distances: [offset - row.block] });
  else known.distances.push(offset - row.block);
}
