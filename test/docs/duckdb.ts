import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { DuckDBInstance } from "@duckdb/node-api";

export type DuckDb = AsyncDisposable & {
  /** The columns and the rows of an answer, with values as texts. */
  rows(query: string): Promise<{ readonly columns: readonly string[]; readonly rows: (string | null)[][] }>;
};

/** DuckDB, with the views of an exported folder, as `duckdb -init views.sql` opens it there. */
export async function openDuckDb(folder?: string): Promise<DuckDb> {
  const instance = await DuckDBInstance.create();
  const connection = await instance.connect();
  if (folder !== undefined) {
    // Instead of the working directory, which is that of the whole process.
    await connection.run(`set file_search_path = '${folder}'`);
    await connection.run(await readFile(join(folder, "views.sql"), "utf8"));
  }
  return {
    async rows(query) {
      const reader = await connection.runAndReadAll(query);
      const rows = reader.getRowsJson().map((row) => row.map((value) => (value === null ? null : String(value))));
      return { columns: reader.columnNames(), rows };
    },
    async [Symbol.asyncDispose]() {
      connection.closeSync();
      instance.closeSync();
    },
  };
}
