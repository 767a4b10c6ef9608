import { sql } from "kysely";
import { readable } from "../db/access/relations.ts";
import { comments, readComments } from "../db/comments/apply.ts";
import { type Database, openDatabase } from "../db/database.ts";

/** The text of docs/sql-dictionary.md for a migrated database: every relation and column that SQL readers see. */
export async function generateDictionary(url: string): Promise<string> {
  await using database = openDatabase({ url, connections: 1 });
  const types = await columnTypes(database);
  const found = Map.groupBy(await readComments(database), ({ relation }) => relation);
  const sections = Object.keys(comments)
    .filter((relation) => relation in readable)
    .map((relation) => {
      const [about, ...columns] = found.get(relation) ?? [];
      const rows = columns.map(
        ({ column, comment }) => `| \`${column}\` | ${types.get(`${relation}.${column}`)} | ${cell(comment)} |`,
      );
      const title = `## \`${relation}\` (${about?.isView ? "view" : "table"})`;
      return [title, "", about?.comment, "", "| column | type | meaning |", "|---|---|---|", ...rows].join("\n");
    });
  return [
    "# Dictionary of the tables and views",
    "",
    "Generated from the comments in the database (`npm run generate:dictionary -w services/query`); `\\d+ tapedeck.loop_times` in psql",
    "shows the same. What they are for, and examples: [sql.md](sql.md).",
    "",
    sections.join("\n\n"),
    "",
  ].join("\n");
}

async function columnTypes({ db, schema }: Database): Promise<ReadonlyMap<string, string>> {
  const { rows } = await sql<{ name: string; type: string }>`
    select relname || '.' || attname as name, format_type(atttypid, atttypmod) as type
    from pg_class c join pg_attribute a on a.attrelid = c.oid
    where relnamespace = ${schema}::regnamespace and attnum > 0 and not attisdropped`.execute(db);
  return new Map(rows.map(({ name, type }) => [name, type]));
}

function cell(text: string): string {
  return text.replaceAll("|", "\\|").replaceAll("*", "\\*");
}
