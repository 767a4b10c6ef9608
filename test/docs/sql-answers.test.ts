import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { documentedQueries } from "@tapedeck/query/testing/documented-queries";
import { temporaryFolder } from "@tapedeck/shared/testing/temporary-folder";
import { Client } from "pg";
import { exportTables } from "tapedeck/commands/export/parquet/run";
import { urlOf } from "tapedeck/testing/recorder";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type AllRecordings, startAllRecordings } from "../stack/all-recordings.ts";
import { type DuckDb, openDuckDb } from "./duckdb.ts";
import { questionsIn, tableOf, withAnswers } from "./sql-answers.ts";

// The record behind the answers of docs/sql.md, which DuckDB has to give, too. After a change of queries or recordings:
// `npm run docs:answers` regenerates them.

const page = join(import.meta.dirname, "../../docs/sql.md");

let all: AllRecordings;
beforeAll(async () => {
  all = await startAllRecordings();
  await all.play();
});
afterAll(() => all[Symbol.asyncDispose]());

it("the answers in docs/sql.md are those to its questions", async () => {
  const text = await readFile(page, "utf8");
  const questions = questionsIn(text);
  expect(questions.length).toBeGreaterThanOrEqual(15);
  const client = new Client({
    connectionString: all.stack.database,
    types: { getTypeParser: () => (value: unknown) => value },
  });
  await client.connect();
  try {
    await client.query("set timezone = 'UTC'");
    const answers: string[] = [];
    for (const { title, query } of questions) {
      const { fields, rows } = await client.query<(string | null)[]>({ text: query, rowMode: "array" });
      expect(rows, title).not.toEqual([]);
      answers.push(
        tableOf(
          fields.map(({ name }) => name),
          rows,
        ),
      );
    }
    await expect(withAnswers(text, answers)).toMatchFileSnapshot(page);
  } finally {
    await client.end();
  }
});

describe("tables exported as Parquet", () => {
  const exported = new AsyncDisposableStack();
  afterAll(() => exported.disposeAsync());
  let duckdb: DuckDb;
  let client: Client;
  beforeAll(async () => {
    const { folder } = exported.use(await temporaryFolder());
    const today = new Date().toISOString().slice(0, 10);
    const url = urlOf(all.stack.grpc);
    // When it was made, and when the test records it.
    await exportTables({ url, parquet: folder, from: "2026-11-19", to: "2026-11-21" });
    await exportTables({ url, parquet: folder, from: today, to: today });
    duckdb = exported.use(await openDuckDb(folder));
    client = new Client({
      connectionString: all.stack.database,
      types: { getTypeParser: () => (value: unknown) => value },
    });
    await client.connect();
    exported.defer(() => client.end());
    await client.query("set timezone = 'UTC'");
  });

  it("DuckDB answers every query of docs/sql.md as Postgres does", async () => {
    const queries = await documentedQueries("sql.md");
    const [longestWaits, builds] = await documentedQueries("parquet.md");
    for (const query of queries) {
      const { rows } = await client.query<(string | null)[]>({ text: query, rowMode: "array" });
      const inDuckDb = query.includes("jsonb_to_recordset") ? (longestWaits ?? "") : query;
      expect(rounded((await duckdb.rows(inDuckDb)).rows), query).toEqual(rounded(rows));
    }
    expect((await duckdb.rows(builds ?? "")).rows).toEqual([["shop", expect.any(String), expect.any(String)]]);
  });

  it("every view of DuckDB has the rows and the columns of Postgres", async () => {
    const views = await duckdb.rows("select view_name from duckdb_views() where schema_name = 'tapedeck'");
    const names = views.rows.flatMap(([name]) => name ?? []);
    expect(names).toEqual(expect.arrayContaining(["operations", "loops", "build_times", "events"]));
    for (const name of names) {
      const { fields } = await client.query(`select * from tapedeck.${name} limit 0`);
      const kept = fields.filter(({ dataTypeID }) => dataTypeID !== types.bytea);
      const { rows } = await client.query<(string | null)[]>({
        text: `select ${kept.map(asWritten).join(", ")} from tapedeck.${name}`,
        rowMode: "array",
      });
      const found = await duckdb.rows(`select ${kept.map((field) => field.name).join(", ")} from tapedeck.${name}`);
      expect(rows, name).not.toEqual([]);
      expect(rounded(found.rows).toSorted(), name).toEqual(rounded(rows).toSorted());
    }
  });
});

/** OIDs of Postgres. */
const types = { bool: 16, bytea: 17, textArray: 1009 };

/** What DuckDB writes in another way. */
function asWritten({ name, dataTypeID }: { readonly name: string; readonly dataTypeID: number }): string {
  if (dataTypeID === types.bool) return `${name}::text`;
  return dataTypeID === types.textArray ? `to_jsonb(${name})` : name;
}

/** Both compute percentiles in doubles, and not with the same last digit. */
function rounded(rows: readonly (readonly (string | null)[])[]) {
  return rows.map((row) =>
    row.map((value) => (/^\d+\.\d+$/.test(value ?? "") ? Number(value).toPrecision(12) : value)),
  );
}
