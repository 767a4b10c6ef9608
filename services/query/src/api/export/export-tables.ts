import type { ExportRequest } from "@tapedeck/proto/tapedeck/v1/query";
import type { ExportTablesResponse, TableColumn } from "@tapedeck/proto/tapedeck/v1/tables";
import { asBuffer } from "@tapedeck/shared/as-buffer";
import { invalidArgument, TapedeckError } from "@tapedeck/shared/errors/errors";
import { zstd } from "@tapedeck/shared/log/batch/zstd";
import { startTimer, stopTimer } from "@tapedeck/shared/sync/timers";
import type pg from "pg";
import type { ReaderLimits } from "../../db/access/limits.ts";
import { sessionSettings } from "../../db/database.ts";
import { privateSchema } from "../../db/private.ts";
import type { ApiDeps, CallScope } from "../deps.ts";
import { copyOut } from "./copy-out.ts";
import {
  columnsOf,
  conditionOn,
  dayAfter,
  type ExportedTable,
  exportedTables,
  type RowsOf,
} from "./exported-tables.ts";

/** Each has a connection to Postgres, and may take one of its cores. */
const maxExports = 2;

type Message = NonNullable<ExportTablesResponse["body"]>;

/**
 * tapedeck.v1.Query/ExportTables: the rows of a workspace as query's own database user reads them, table by table in a
 * transaction for each day, so that no snapshot is held for longer than a day takes.
 */
export function exportTables(limits: Pick<ReaderLimits, "transactionMs">) {
  let running = 0;
  return async function* (
    { workspace, database }: Pick<ApiDeps, "workspace" | "database">,
    { developer, days }: ExportRequest,
    { signal }: CallScope,
  ): AsyncGenerator<ExportTablesResponse, void> {
    const { from = "", to = "" } = days ?? {};
    assertDays(from, to);
    if (running >= maxExports) {
      throw new TapedeckError("limit_exceeded", `${maxExports} exports of tables run already: try again later`);
    }
    signal.throwIfAborted();
    running++;
    const connecting = (async () => database().connect())();
    let isOver = false;
    /** Also while nobody takes the next message: then it holds nothing of Postgres any more, and counts no more. */
    const end = async () => {
      if (isOver) return;
      isOver = true;
      running--;
      await connecting.then((client) => client.end()).catch(() => {});
    };
    signal.addEventListener("abort", end);
    try {
      const client = await connecting;
      // A reader may take longer for the rows of a day than query has for an answer.
      const { sql: text, parameters } = sessionSettings(database().schema, limits.transactionMs);
      await client.query(text, [...parameters]);
      // The rows of a day look others up by key. To join them at once, Postgres would read those of all days for each day.
      await client.query("set enable_hashjoin = off; set enable_mergejoin = off");
      const tables = new TableReader(client, { workspace, developer });
      const withoutDays = exportedTables.filter(({ within }) => within === undefined);
      const withDays = exportedTables.filter(({ within }) => within !== undefined);
      yield* inTime(limits.transactionMs, end, tables.rowsOf(withoutDays, ""));
      for (let day = from; day <= to; day = dayAfter(day)) {
        yield* inTime(limits.transactionMs, end, tables.rowsOf(withDays, day));
      }
    } catch (error) {
      signal.throwIfAborted();
      throw error;
    } finally {
      signal.removeEventListener("abort", end);
      await end();
    }
  };
}

class TableReader {
  readonly #client: pg.Client;
  readonly #of: RowsOf;
  readonly #columns = new Map<string, { readonly columns: TableColumn[]; readonly select: string }>();

  constructor(client: pg.Client, of: RowsOf) {
    this.#client = client;
    this.#of = of;
  }

  /** The rows of one moment. */
  async *rowsOf(tables: readonly ExportedTable[], day: string): AsyncGenerator<ExportTablesResponse, void> {
    await this.#client.query("begin transaction isolation level repeatable read read only");
    // A rebuild that is done replaces the tables between two days.
    await this.#client.query(`lock table ${privateSchema}.swap in access share mode`);
    for (const table of tables) {
      const { columns, select } = await this.#columnsOf(table);
      yield message({ $case: "begin", value: { table: table.name, day, columns, workspace: this.#of.workspace } });
      const query = `select ${select} from ${table.name} where ${conditionOn(table, this.#of, day)}`;
      let count = 0;
      for await (const { rows, count: more } of copyOut(this.#client, query, packed)) {
        count += more;
        yield message(rows);
      }
      yield message({ $case: "end", value: { rows: BigInt(count) } });
    }
    await this.#client.query("commit");
    yield message({ $case: "done", value: { day } });
  }

  async #columnsOf(table: ExportedTable) {
    const known = this.#columns.get(table.name);
    if (known !== undefined) return known;
    const { fields } = await this.#client.query(`select * from ${table.name} limit 0`);
    const columns = columnsOf(table, fields);
    this.#columns.set(table.name, columns);
    return columns;
  }
}

/** A fifteenth is left of typical rows, and the gateway's work with it. */
function packed(rows: Buffer): Message {
  if (zstd.compress === undefined) return { $case: "rows", value: Buffer.from(rows) };
  return { $case: "compressed_rows", value: { zstd: asBuffer(zstd.compress(rows)), size: rows.byteLength } };
}

function message(body: Message): ExportTablesResponse {
  return { body };
}

/** Rows that nobody reads would hold their snapshot for ever: `end` gives it back, whatever the reader does. */
async function* inTime<T>(ms: number, end: () => Promise<void>, rows: AsyncIterable<T>): AsyncGenerator<T, void> {
  let isLate = false;
  const timer = startTimer(() => {
    isLate = true;
    void end();
  }, ms);
  try {
    yield* rows;
  } catch (error) {
    throw isLate ? tooSlow() : error;
  } finally {
    stopTimer(timer);
  }
  if (isLate) throw tooSlow();
}

function tooSlow(): TapedeckError {
  return new TapedeckError(
    "limit_exceeded",
    "the rows of one day took too long to be read (limits.sql.transaction): try again from that day on",
  );
}

/** Ten years. A longer export can be made in parts. */
const maxDays = 3_660;

function assertDays(from: string, to: string): void {
  const [first, last] = [dayOf(from, "from"), dayOf(to, "to")];
  if (first > last) throw invalidArgument(`to (${to}) is before from (${from})`, "to");
  if ((last - first) / 86_400_000 >= maxDays) throw invalidArgument(`these are more than ${maxDays} days`, "from");
}

function dayOf(text: string, field: string): number {
  const ms = /^\d{4}-\d{2}-\d{2}$/.test(text) ? Date.parse(text) : Number.NaN;
  // JavaScript takes 31 February for a day in March.
  if (!Number.isNaN(ms) && new Date(ms).toISOString().startsWith(text)) return ms;
  throw invalidArgument(`${field} is not a day: expected 2026-01-31`, field);
}
