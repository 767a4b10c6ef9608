import { sql } from "kysely";
import { readable } from "../db/access/relations.ts";
import { comments, readComments } from "../db/comments/apply.ts";
import { type Database, openDatabase } from "../db/database.ts";

/** A column that at least this many relations describe alike is described once. */
const minRelations = 3;

/** The text of docs/sql-dictionary.md for a migrated database: every relation and column that SQL readers see. */
export async function generateDictionary(url: string): Promise<string> {
  await using database = openDatabase({ url, connections: 1 });
  const types = await columnTypes(database);
  const found = Map.groupBy(await readComments(database), ({ relation }) => relation);
  const relations = Object.keys(comments).filter((relation) => relation in readable);
  const rowOf = ({ relation, column, comment }: Comment) =>
    `| \`${column}\` | ${types.get(`${relation}.${column}`)} | ${cell(comment)} |`;
  const columnsOf = (relation: string) => (found.get(relation) ?? []).slice(1);
  const common = new Set(commonRows(relations.flatMap(columnsOf).map((column) => [column.column, rowOf(column)])));
  const sections = relations.map((relation) => {
    const [about] = found.get(relation) ?? [];
    const isCommon = (column: Comment) => common.has(rowOf(column));
    const own = columnsOf(relation).filter((column) => !isCommon(column));
    const title = `## \`${relation}\` (${about?.isView ? "view" : "table"})`;
    const names = columnsOf(relation)
      .filter(isCommon)
      .map(({ column }) => `\`${column}\``)
      .join(", ");
    return [
      ...[title, "", about?.comment, ""],
      ...(own.length === 0 ? [] : [...head, ...own.map(rowOf), ""]),
      ...(names === "" ? [] : [`And [${names}](#columns-of-many-tables).`, ""]),
    ]
      .join("\n")
      .trimEnd();
  });
  return [
    "# Dictionary of the tables and views",
    "",
    "Generated from the comments in the database (`npm run generate:dictionary -w services/query`); `\\d+ tapedeck.loop_times` in psql",
    "shows the same. What they are for, and examples: [sql.md](sql.md).",
    "",
    ...["## Columns of many tables", "", ...head, ...common, ""],
    sections.join("\n\n"),
    "",
  ].join("\n");
}

/** The most frequent row of each name, if enough relations have it. */
function commonRows(rows: readonly (readonly [column: string, row: string])[]): readonly string[] {
  return [...Map.groupBy(rows, ([column]) => column).values()].flatMap((named) => {
    const alike = [...Map.groupBy(named, ([, row]) => row)].toSorted(
      ([, left], [, right]) => right.length - left.length,
    );
    return alike.slice(0, 1).flatMap(([row, found]) => (found.length < minRelations ? [] : [row]));
  });
}

const head = ["| column | type | meaning |", "|---|---|---|"];

type Comment = Awaited<ReturnType<typeof readComments>>[number];

async function columnTypes({ db, schema }: Database): Promise<ReadonlyMap<string, string>> {
  const { rows } = await sql<{ name: string; type: string }>`
    select relname || '.' || attname as name, replace(format_type(atttypid, atttypmod), 'timestamp with time zone', 'timestamptz') as type
    from pg_class c join pg_attribute a on a.attrelid = c.oid
    where relnamespace = ${schema}::regnamespace and attnum > 0 and not attisdropped`.execute(db);
  return new Map(rows.map(({ name, type }) => [name, type]));
}

function cell(text: string): string {
  return text.replaceAll("|", "\\|").replaceAll("*", "\\*");
}
