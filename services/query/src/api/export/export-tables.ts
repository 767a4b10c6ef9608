import { promisify } from "node:util";
import { deflateRaw, type ZlibOptions } from "node:zlib";
import type { ExportRequest } from "@tapedeck/proto/tapedeck/v1/query";
import type { ExportTablesResponse, TableColumn } from "@tapedeck/proto/tapedeck/v1/tables";
import { invalidArgument, TapedeckError } from "@tapedeck/shared/errors/errors";
import { startTimer, stopTimer } from "@tapedeck/shared/sync/timers";
import type pg from "pg";
import type { ReaderLimits } from "../../db/access/limits.ts";
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

/** A fifteenth is left of typical rows, and the gateway's work with it. Another thread does it. */
const compressed = promisify<Buffer, ZlibOptions, Buffer>(deflateRaw);

type Message = NonNullable<ExportTablesResponse["body"]>;

/**
 * tapedeck.v1.Query/ExportTables: the rows of a workspace as query's own database user reads them, table by table in a
 * transaction for each day, so that no snapshot is held for longer than a day takes.
 */
export function exportTables(limits: Pick<ReaderLimits, "transactionMs">) {
  let running = 0;
  return async function* (
    { workspace, database }: ApiDeps,
    { developer, days }: ExportRequest,
    { signal }: CallScope,
  ): AsyncGenerator<ExportTablesResponse, void> {
    const { from = "", to = "" } = days ?? {};
    assertDays(from, to);
    if (running >= maxExports) {
      throw new TapedeckError("limit_exceeded", `${maxExports} exports of tables run already: try again later`);
    }
    running++;
    const client = await database()
      .connect()
      .catch((error: unknown) => {
        running--;
        throw error;
      });
    try {
      const { text, values } = settings(database().sessionSettings);
      await client.query(text, values);
      const tables = new TableReader(client, { workspace, developer });
      const withoutDays = exportedTables.filter(({ within }) => within === undefined);
      const withDays = exportedTables.filter(({ within }) => within !== undefined);
      yield* inTime(limits.transactionMs, signal, (left) => tables.rowsOf(withoutDays, "", left));
      for (let day = from; day <= to; day = dayAfter(day)) {
        yield* inTime(limits.transactionMs, signal, (left) => tables.rowsOf(withDays, day, left));
      }
    } finally {
      running--;
      await client.end().catch(() => {});
    }
  };
}

function settings({ sql, parameters }: { readonly sql: string; readonly parameters: readonly unknown[] }) {
  return { text: sql, values: [...parameters] };
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
  async *rowsOf(
    tables: readonly ExportedTable[],
    day: string,
    signal: AbortSignal,
  ): AsyncGenerator<ExportTablesResponse, void> {
    await this.#client.query("begin transaction isolation level repeatable read read only");
    // A rebuild that is done replaces the tables between two days.
    await this.#client.query(`lock table ${privateSchema}.swap in access share mode`);
    for (const table of tables) {
      const { columns, select } = await this.#columnsOf(table);
      yield message({ $case: "begin", value: { table: table.name, day, columns, workspace: this.#of.workspace } });
      const query = `select ${select} from ${table.name} where ${conditionOn(table, this.#of, day)}`;
      let count = 0;
      for await (const copied of copyOut(this.#client, query, signal)) {
        count += copied.count;
        yield message({ $case: "rows", value: await compressed(copied.rows, { level: 1 }) });
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

function message(body: Message): ExportTablesResponse {
  return { body };
}

/** Rows that nobody reads would hold their snapshot for ever. */
async function* inTime<T>(
  ms: number,
  signal: AbortSignal,
  rows: (signal: AbortSignal) => AsyncIterable<T>,
): AsyncGenerator<T, void> {
  const late = new AbortController();
  const timer = startTimer(() => late.abort(tooSlow()), ms);
  try {
    yield* rows(AbortSignal.any([signal, late.signal]));
  } finally {
    stopTimer(timer);
  }
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
