import { type Offset, storedOffset } from "@tapedeck/shared/log/offset";
import { type SourceName, sourceParts } from "@tapedeck/shared/source";
import { sql } from "kysely";
import type { Tx } from "../../db/database.ts";
import { plannedOnce } from "../../db/pipeline.ts";
import type { View } from "../view.ts";

/**
 * How many events a block has. A row of positions holds those of one block, counted from its beginning; at this size even a
 * row with all of them fits into a page, and is rewritten in place when an event is added.
 */
export const blockSize = 512;

/** How far the last event of a block may be from its first one: the distance is an int. Text may expire between them. */
const longestBlock = 2 ** 31 - 1;

type Block = { readonly first: Offset; events: number };

/**
 * Each workspace's log cut into blocks: each begins with an event, and has the next `blockSize` ones. A fixed span of offsets or messages
 * would have one event or half a million, because a message may hold one event or a thousand. Events count although their
 * session was erased, so that the cuts do not depend on when that was known.
 */
export const eventBlocks: View = {
  name: "event_blocks",
  version: 1,
  sessionTables: [],
  countsErased: true,
  async apply(tx, batch) {
    const [first] = batch;
    if (first === undefined) return;
    const { workspace } = sourceParts(first.event.source as SourceName);
    const blocks: Block[] = await lastBlock(tx, workspace);
    for (const { offset } of batch) {
      const last = blocks.at(-1);
      if (last === undefined || last.events === blockSize || offset - last.first > longestBlock) {
        blocks.push({ first: offset, events: 1 });
      } else last.events += 1;
    }
    await sql`
      insert into event_blocks (workspace, first_position, events)
      select ${workspace}, * from unnest(${blocks.map(({ first }) => first)}::bigint[], ${blocks.map(({ events }) => events)}::int[])
      on conflict (workspace, first_position) do update set events = excluded.events`.execute(tx);
  },
};

async function lastBlock(tx: Tx, workspace: string): Promise<Block[]> {
  const { rows } = await sql<Block>`${plannedOnce}
    select first_position as first, events from event_blocks where workspace = ${workspace}
    order by first_position desc limit 1`.execute(tx);
  return [...rows];
}

/** Where the workspace's block begins that has the event at the offset; before the first block: the offset itself. */
export async function blockOf(tx: Tx, workspace: string, offset: Offset): Promise<Offset> {
  const { rows } = await sql<{ first: number }>`
    select first_position as first from event_blocks where workspace = ${workspace} and first_position <= ${offset}
    order by first_position desc limit 1`.execute(tx);
  return storedOffset(rows[0]?.first ?? offset);
}

/** The beginnings of the workspace's blocks from the one with this event on. */
export async function blocksFrom(tx: Tx, workspace: string, offset: Offset): Promise<readonly Offset[]> {
  const { rows } = await sql<{ first: number }>`${plannedOnce}
    select first_position as first from event_blocks
    where workspace = ${workspace} and first_position >= (
      select max(first_position) from event_blocks where workspace = ${workspace} and first_position <= ${offset})
    order by first_position`.execute(tx);
  return rows.map(({ first }) => storedOffset(first));
}
