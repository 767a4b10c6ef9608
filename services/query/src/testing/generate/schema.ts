import { type DatabaseMetadata, generate, PostgresDialect } from "kysely-codegen";
import { openDatabase, schemasOf } from "../../db/database.ts";

/** The source text of db/schema.generated.ts for a migrated database. */
export async function generateSchema(url: string): Promise<string> {
  await using database = openDatabase({ url, connections: 1 });
  const { db, schema } = database;
  const schemas = [...schemasOf(schema)];
  let columnTypes = "";
  const types = await generate({
    db,
    dialect: new PostgresDialect({ defaultSchemas: schemas }),
    includePattern: `(${schemas.join("|")}).*`,
    defaultSchemas: schemas,
    // The types that the type parsers of openDatabase return.
    typeMapping: { int8: "number", timestamptz: "string", jsonb: "unknown" },
    outFile: null,
    async postprocess({ metadata }) {
      columnTypes = columnTypesOf(metadata);
      return metadata;
    },
  });
  return `${types}\n${columnTypes}`;
}

/** Types are erased, but writing a table takes the names and SQL types of its columns at run time. */
function columnTypesOf({ tables }: DatabaseMetadata): string {
  const entries = tables
    .filter(({ isView }) => !isView)
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
    .map(({ name, columns }) => [name, Object.fromEntries(columns.map((column) => [column.name, column.dataType]))]);
  return `export const columnTypes = ${JSON.stringify(Object.fromEntries(entries), null, 2)} as const;\n`;
}
