import { Client } from "pg";

/** Writes the rows of ready tables again: arrays of columns, unnest, one transaction per batch. Computes nothing. */

type Copied = { readonly insert: string; readonly columns: readonly (readonly unknown[])[]; readonly rows: number };

const searchPath = "set search_path = tapedeck, tapedeck_internal";

let client: Client;
let tables: Copied[] = [];
let names: readonly string[] = [];

/** Reads the rows of every table in the schemas, as text. Resolves with their number. `to`: a database with the same tables. */
export async function load(from: string, to: string): Promise<number> {
  const reader = new Client(from);
  await reader.connect();
  await reader.query(searchPath);
  const { rows: found } = await reader.query<{ name: string }>(
    `select relname as name from pg_class where relnamespace = any(current_schemas(false)::regnamespace[]) and relkind in ('r', 'p')
       and not relispartition and relname not like 'kysely%' and relname <> 'checkpoint'`,
  );
  names = found.map(({ name }) => name);
  tables = [];
  // Triggers write these.
  const derived = ["build_months", "changed_build_days", "build_days", "red_times"];
  for (const name of names.filter((one) => !derived.includes(one))) tables.push(await read(reader, name));
  await reader.end();
  client = new Client(to);
  await client.connect();
  await client.query(searchPath);
  return tables.reduce((sum, { rows }) => sum + rows, 0);
}

export async function empty(): Promise<void> {
  await client.query(`truncate ${names.map((name) => `"${name}"`).join(", ")}`);
}

/** Resolves with the number of rows now in the tables. */
export async function write(batches: number): Promise<number> {
  let written = 0;
  for (let batch = 0; batch < batches; batch++) {
    await client.query("begin");
    for (const { insert, columns, rows } of tables) {
      const [from, to] = [Math.floor((rows * batch) / batches), Math.floor((rows * (batch + 1)) / batches)];
      if (from === to) continue;
      const values = columns.map((column) => column.slice(from, to));
      const { rowCount } = await client.query({ name: insert.slice(0, 60), text: insert, values });
      written += rowCount ?? 0;
    }
    await client.query("commit");
  }
  return written;
}

async function read(reader: Client, name: string): Promise<Copied> {
  const { rows: columns } = await reader.query<{ name: string; type: string }>(
    `select attname as name, format_type(atttypid, atttypmod) as type from pg_attribute
     where attrelid = ('"' || $1 || '"')::regclass and attnum > 0 and not attisdropped order by attnum`,
    [name],
  );
  const quoted = columns.map((column) => `"${column.name}"`);
  const text = quoted.map((column) => `${column}::text`).join(", ");
  const { rows } = await reader.query<unknown[]>({ text: `select ${text} from "${name}"`, rowMode: "array" });
  // An array of arrays would be unnested to its elements.
  const isArray = ({ type }: { readonly type: string }) => type.endsWith("[]");
  const arrays = columns.map((column, index) => `$${index + 1}::${isArray(column) ? "text" : column.type}[]`);
  const values = columns.map((column, index) => (isArray(column) ? `${quoted[index]}::${column.type}` : quoted[index]));
  return {
    insert: `insert into "${name}" (${quoted.join(", ")})
      select ${values.join(", ")} from unnest(${arrays.join(", ")}) as copied (${quoted.join(", ")})`,
    columns: columns.map((_, index) => rows.map((row) => row[index])),
    rows: rows.length,
  };
}
