import { ownValue } from "@tapedeck/shared/own-value";
import { CompiledQuery } from "kysely";
import { arrayText } from "./array-text.ts";
import type { Tx } from "./database.ts";
import { columnTypes } from "./schema.generated.ts";
import type { RowOf, TableName } from "./schema.ts";

/** The parts for writing whole batches of rows to a table. */
export type Table<Row> = {
  readonly name: TableName;
  readonly key: readonly (keyof Row & string)[];
  /** SQL types of all columns, by name. */
  readonly columns: Readonly<Record<string, string>>;
  readonly statements: Statements;
};

/** Texts that take an array for each column, or for each column of the key. */
type Statements = {
  readonly insert: string;
  readonly upsert: string;
  readonly find: string;
  readonly remove: string;
};

/** A table and the columns that identify its rows. */
export function table<Name extends TableName>(
  name: Name,
  key: readonly (keyof RowOf<Name> & string)[],
): Table<RowOf<Name>> {
  const columns = columnTypes[name];
  return { name, key, columns, statements: statementsFor(name, key, columns) };
}

/** Inserts rows, or replaces those with the same key. `rows` has one row per key. */
export async function upsert<Row>(tx: Tx, table: Table<Row>, rows: readonly Row[]): Promise<void> {
  if (rows.length === 0) return;
  await tx.executeQuery(CompiledQuery.raw(table.statements.upsert, arrays(table, columnsOf(table), rows)));
}

/** Inserts rows that are known to be new. */
export async function insert<Row>(tx: Tx, table: Table<Row>, rows: readonly Row[]): Promise<void> {
  if (rows.length === 0) return;
  await tx.executeQuery(CompiledQuery.raw(table.statements.insert, arrays(table, columnsOf(table), rows)));
}

/** The rows of the table that have these keys. */
export async function find<Row>(tx: Tx, table: Table<Row>, keys: readonly Partial<Row>[]): Promise<readonly Row[]> {
  if (keys.length === 0) return [];
  const { rows } = await tx.executeQuery(CompiledQuery.raw(table.statements.find, arrays(table, table.key, keys)));
  return rows as readonly Row[];
}

/** Removes the rows that have the same keys. */
export async function remove<Row>(tx: Tx, table: Table<Row>, rows: readonly Row[]): Promise<void> {
  if (rows.length === 0) return;
  await tx.executeQuery(CompiledQuery.raw(table.statements.remove, arrays(table, table.key, rows)));
}

function columnsOf<Row>(table: Table<Row>): readonly (keyof Row & string)[] {
  return Object.keys(table.columns) as (keyof Row & string)[];
}

function arrays<Row>(table: Table<Row>, columns: readonly (keyof Row & string)[], rows: readonly Partial<Row>[]) {
  return columns.map((column) => arrayText(ownValue(table.columns, column) ?? "", rows, column));
}

/** Made once: the texts are long, and they are needed for every batch. */
function statementsFor(name: string, key: readonly string[], columns: Readonly<Record<string, string>>): Statements {
  const list = (names: readonly string[]) => names.map((one) => `"${one}"`).join(", ");
  const parameters = (names: readonly string[]) =>
    `unnest(${names.map((one, index) => `$${index + 1}::${ownValue(columns, one)}[]`).join(", ")})`;
  const all = Object.keys(columns);
  const changed = all.filter((column) => !key.includes(column)).map((column) => `"${column}" = excluded."${column}"`);
  const insert = `insert into "${name}" (${list(all)}) select * from ${parameters(all)}`;
  return {
    insert,
    upsert: `${insert} on conflict (${list(key)}) do update set ${changed.join(", ")}`,
    find: `/* planned once */ select t.* from ${parameters(key)} as requested (${list(key)})
      cross join lateral (
        select * from "${name}" where ${key.map((one) => `"${name}"."${one}" = requested."${one}"`).join(" and ")} offset 0) as t`,
    remove: `delete from "${name}" where (${list(key)}) in (select * from ${parameters(key)})`,
  };
}
