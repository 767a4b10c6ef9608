import { sql } from "kysely";
import { readable } from "../../db/access/relations.ts";
import { comments, readComments } from "../../db/comments/apply.ts";
import { type Database, openDatabase } from "../../db/database.ts";

/** A column that at least this many relations describe alike is described once; so are this many columns of another relation. */
const minRelations = 3;
const commonColumns = "Common columns";

/** The text of docs/sql-dictionary.md for a migrated database: every relation and column that SQL readers see. */
export async function generateDictionary(url: string): Promise<string> {
  await using database = openDatabase({ url, connections: 1 });
  const types = await columnTypes(database);
  const found = Map.groupBy(await readComments(database), ({ relation }) => relation);
  const relations = Object.keys(comments).filter((relation) => relation in readable);
  const rowOf = ({ relation, column, comment }: Comment) =>
    `* \`${column}\`${typeText(types.get(`${relation}.${column}`))}: ${escaped(comment)}`;
  const columnsOf = (relation: string) => (found.get(relation) ?? []).slice(1);
  const common = commonRows(relations.flatMap(columnsOf).map((column) => [column.column, rowOf(column)]));
  /** Where each row is described. */
  const described = new Map(common.map((row) => [row, commonColumns]));
  const sections = relations.map((relation) => {
    const [about] = found.get(relation) ?? [];
    const title = `${relation} (${about?.isView ? "view" : "table"})`;
    const places = Map.groupBy(columnsOf(relation), (column) => described.get(rowOf(column)));
    const isWorthALink = (place: string | undefined) =>
      place === commonColumns || (place !== undefined && (places.get(place)?.length ?? 0) >= minRelations);
    const own = columnsOf(relation).filter((column) => !isWorthALink(described.get(rowOf(column))));
    const elsewhere = columnsOf(relation).filter((column) => !own.includes(column));
    for (const column of own) described.set(rowOf(column), title);
    const references = [...Map.groupBy(elsewhere, (column) => described.get(rowOf(column)) ?? "")].map(
      ([place, columns]) =>
        `[${place === commonColumns ? "Common" : place}](#${anchor(place)}): ${columns.map(({ column }) => `\`${column}\``).join(", ")}.`,
    );
    return [
      ...[`## ${title}`, "", about?.comment, ""],
      ...(own.length === 0 ? [] : [...own.map(rowOf), ""]),
      ...references.flatMap((reference) => [reference, ""]),
    ]
      .join("\n")
      .trimEnd();
  });
  return [
    "# Dictionary of the tables and views",
    "",
    "Generated from the comments in the database, which `\\d+ tapedeck.loop_times` in psql shows too. [sql.md](sql.md) has examples. A column",
    "without a type is `text`.",
    "",
    ...[`## ${commonColumns}`, "", ...common, ""],
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

/** The anchor of a heading. */
function anchor(title: string): string {
  return title.toLowerCase().replaceAll(/[()]/g, "").replaceAll(" ", "-");
}

type Comment = Awaited<ReturnType<typeof readComments>>[number];

async function columnTypes({ db, schema }: Database): Promise<ReadonlyMap<string, string>> {
  const { rows } = await sql<{ name: string; type: string }>`
    select relname || '.' || attname as name, replace(format_type(atttypid, atttypmod), 'timestamp with time zone', 'timestamptz') as type
    from pg_class c join pg_attribute a on a.attrelid = c.oid
    where relnamespace = ${schema}::regnamespace and attnum > 0 and not attisdropped`.execute(db);
  return new Map(rows.map(({ name, type }) => [name, type]));
}

function typeText(type: string | undefined): string {
  return type === "text" ? "" : ` ${type}`;
}

function escaped(text: string): string {
  return text.replaceAll("*", "\\*");
}
