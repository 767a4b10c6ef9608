import type { RecordedEvent } from "@tapedeck/shared/log/log";
import { sql } from "kysely";
import type { Tx } from "../../db/database.ts";
import { plannedOnce } from "../../db/pipeline.ts";
import type { OperationRow } from "../../db/schema.ts";
import { table, upsert } from "../../db/table.ts";
import type { View } from "../view.ts";
import { endsSession, type Pairing, pairingKey, stepOf } from "./pairing.ts";
import { rowsAfter } from "./rows.ts";

const operationsTable = table("operations", ["id"]);

export const operations: View = {
  name: "operations",
  version: 2,
  sessionTables: ["operations"],
  async apply(tx, batch, { changed, ended }) {
    const steps = batch.filter((recorded) => endsSession(recorded.event) || stepOf(recorded) !== undefined);
    const [known, open] = await Promise.all([newest(tx, steps), running(tx, steps)]);
    const rows = rowsAfter([...known, ...open], steps, (row, { recordedAt }) => ended.push({ row, recordedAt }));
    for (const row of rows) changed.set(row.id, row);
    await upsert(tx, operationsTable, rows);
  },
};

async function newest(tx: Tx, batch: readonly RecordedEvent[]): Promise<readonly OperationRow[]> {
  const pairings = new Map<string, Pairing>();
  for (const recorded of batch) {
    const step = stepOf(recorded);
    if (step !== undefined) pairings.set(pairingKey(step.pairing), step.pairing);
  }
  return newestOf(tx, [...pairings.values()]);
}

/** The newest operation of each pairing, as far as there is one. */
export async function newestOf(tx: Tx, keys: readonly Pairing[]): Promise<readonly OperationRow[]> {
  if (keys.length === 0) return [];
  const { rows } = await sql<OperationRow>`${plannedOnce}
    select o.* from unnest(
      ${keys.map(({ session }) => session)}::text[], ${keys.map(({ runner }) => runner)}::int[],
      ${keys.map(({ loop }) => loop)}::int[], ${keys.map(({ kind }) => kind)}::text[],
      ${keys.map(({ subject }) => subject)}::text[], ${keys.map(({ instance }) => instance)}::text[])
      as requested (session, runner, loop, kind, subject, instance)
    cross join lateral (
      select * from (
        select * from operations where session = requested.session and runner = requested.runner and loop = requested.loop
          and kind = requested.kind and subject = requested.subject and instance = requested.instance
          and hashtext(subject) = hashtext(requested.subject) and hashtext(instance) = hashtext(requested.instance)
        -- Else an index in the order of positions may be read to its end.
        offset 0) as own
      order by start_position desc limit 1) as o
  `.execute(tx);
  return rows;
}

async function running(tx: Tx, batch: readonly RecordedEvent[]): Promise<readonly OperationRow[]> {
  const ended = batch.filter(({ event }) => endsSession(event)).map(({ event }) => event.session);
  if (ended.length === 0) return [];
  return tx
    .selectFrom("operations")
    .selectAll()
    .where(({ eb, val }) => eb("session", "=", eb.fn.any(val(ended))))
    .where("outcome", "is", null)
    .execute();
}
