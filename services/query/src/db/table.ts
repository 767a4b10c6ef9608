import { sql } from "kysely";
import type { Tx } from "./database.ts";
import { columnTypes } from "./schema.generated.ts";
import type { RowOf, TableName } from "./schema.ts";

/** What writing whole batches of rows to a table needs. */
export type Table<Row> = {
  readonly name: TableName;
  readonly key: readonly (keyof Row & string)[];
  /** SQL types of all columns, by name. */
  readonly columns: Readonly<Record<string, string>>;
};

/** A table and the columns that identify its rows. */
export function table<Name extends TableName>(
  name: Name,
  key: readonly (keyof RowOf<Name> & string)[],
): Table<RowOf<Name>> {
  return { name, key, columns: columnTypes[name] };
}

/** Inserts rows, or replaces those with the same key. `rows` has one row per key. */
export async function upsert<Row>(tx: Tx, table: Table<Row>, rows: readonly Row[]): Promise<void> {
  if (rows.length === 0) return;
  const columns = columnsOf(table);
  const changed = columns.filter((column) => !table.key.includes(column));
  await sql`
    insert into ${sql.table(table.name)} (${sql.join(columns.map((column) => sql.ref(column)))})
    select * from unnest(${arrays(table, columns, rows)})
    on conflict (${sql.join(table.key.map((column) => sql.ref(column)))})
    do update set ${sql.join(changed.map((column) => sql`${sql.ref(column)} = excluded.${sql.ref(column)}`))}
  `.execute(tx);
}

/** Inserts rows that are known to be new. */
export async function insert<Row>(tx: Tx, table: Table<Row>, rows: readonly Row[]): Promise<void> {
  if (rows.length === 0) return;
  const columns = columnsOf(table);
  await sql`
    insert into ${sql.table(table.name)} (${sql.join(columns.map((column) => sql.ref(column)))})
    select * from unnest(${arrays(table, columns, rows)})
  `.execute(tx);
}

/** The rows of the table that have these keys. */
export async function find<Row>(tx: Tx, table: Table<Row>, keys: readonly Partial<Row>[]): Promise<readonly Row[]> {
  if (keys.length === 0) return [];
  const columns = sql.join(table.key.map((column) => sql.ref(column)));
  const { rows } = await sql<Row>`
    select t.* from unnest(${arrays(table, table.key, keys)}) as wanted (${columns})
    join ${sql.table(table.name)} as t using (${columns})
  `.execute(tx);
  return rows;
}

/** Removes the rows that have the same keys. */
export async function remove<Row>(tx: Tx, table: Table<Row>, rows: readonly Row[]): Promise<void> {
  if (rows.length === 0) return;
  await sql`
    delete from ${sql.table(table.name)}
    where (${sql.join(table.key.map((column) => sql.ref(column)))}) in
      (select * from unnest(${arrays(table, table.key, rows)}))
  `.execute(tx);
}

function columnsOf<Row>(table: Table<Row>): (keyof Row & string)[] {
  return Object.keys(table.columns) as (keyof Row & string)[];
}

function arrays<Row>(table: Table<Row>, columns: readonly (keyof Row & string)[], rows: readonly Partial<Row>[]) {
  return sql.join(
    columns.map((column) => {
      const type = table.columns[column] ?? "";
      const values = rows.map((row) =>
        type === "jsonb" && row[column] !== null ? JSON.stringify(row[column]) : row[column],
      );
      return sql`${values}::${sql.raw(type)}[]`;
    }),
  );
}
