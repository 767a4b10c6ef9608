import { type ServiceError, status } from "@grpc/grpc-js";
import {
  type CompressedRows,
  ExportTablesRequest,
  type ExportTablesResponse,
  type TableBegin,
} from "@tapedeck/proto/tapedeck/v1/tables";
import { TapedeckClient } from "@tapedeck/proto/tapedeck/v1/tapedeck";
import { asBuffer } from "@tapedeck/shared/as-buffer";
import { zstd } from "@tapedeck/shared/log/batch/zstd";
import { worded } from "../../../api/exported-sessions.ts";
import { CommandError, sentenceOf } from "../../../command-error.ts";
import { bytesText } from "../../../display/durations.ts";
import { print } from "../../../display/output.ts";
import { grpcEndpoint } from "../../../grpc-endpoint.ts";
import { type GrpcTarget, grpcTarget } from "../../../grpc-target.ts";
import { Progress, type ProgressTo } from "../../../progress.ts";
import { stopSignals } from "../../stop-signals.ts";
import { columnTypes } from "./columns.ts";
import { viewsFile } from "./duckdb-views.ts";
import { ExportFolder, type TableOfDay } from "./folder.ts";
import { type ColumnHead, Rows } from "./rows.ts";

export type ExportTablesOptions = {
  readonly url?: string;
  readonly parquet: string;
  /** Days, as in 2026-01-31. */
  readonly from: string;
  readonly to: string;
};

/** The rows of a file, which has one row group. */
export const maxFileRows = 1_000_000;
/** Long texts make a file of fewer rows. */
const maxFileBytes = 256 * 1024 * 1024;
const maxMessageBytes = 64 * 1024 * 1024;

/** Writes the rows of the tables for SQL into a folder. */
export async function exportTables(options: ExportTablesOptions, progressTo: ProgressTo = {}): Promise<void> {
  const { parquet: folder, from, to } = options;
  if (from > to) throw new CommandError(`--to (${to}) is before --from (${from}).`);
  const target = grpcTarget(options.url);
  const files = await ExportFolder.open(folder);
  using stop = stopSignals();
  using progress = new Progress({ what: "exporting tables", unit: "rows", ...progressTo });
  const written: Written = { rows: 0, lastDay: undefined, bytes: 0 };
  try {
    await writeAll(messages(target, { from, to }, stop.signal), files, written, () => progress.reached(written.rows));
    if (written.lastDay !== to) throw new CommandError(`${target.name} closed the connection.`);
  } catch (error) {
    const reason = stop.signal.aborted ? "stopped" : sentenceOf(error).replace(/\.$/, "");
    // What breaks off behind the last day takes nothing away.
    if (written.lastDay !== to) throw new CommandError(`${reason}: ${whatIsThere(written, options)}`);
  } finally {
    await files.close().catch(() => {}); // the reason is known already
  }
  progress[Symbol.dispose]();
  print(`${folder}: ${from} to ${to}, ${written.rows.toLocaleString("en")} rows, ${bytesText(written.bytes)}`);
  print(`Read it with DuckDB: cd ${folder} && duckdb -init ${viewsFile}`);
}

/** Counts while files are written. */
type Written = { rows: number; bytes: number; lastDay: string | undefined };

/** For somebody who continues an export that did not come to its end. */
function whatIsThere({ lastDay }: Written, { parquet, from, to }: ExportTablesOptions): string {
  if (lastDay === undefined) return `no day in ${parquet} was replaced.`;
  const next = new Date(Date.parse(lastDay) + 86_400_000).toISOString().slice(0, 10);
  return `the days ${from} to ${lastDay} are complete. Go on with --from ${next} --to ${to}.`;
}

async function* messages(
  target: GrpcTarget,
  days: { readonly from: string; readonly to: string },
  signal: AbortSignal,
): AsyncGenerator<ExportTablesResponse, void> {
  const { address, credentials, metadata, options } = grpcEndpoint(target);
  const client = new TapedeckClient(address, credentials, {
    ...options,
    "grpc.max_receive_message_length": maxMessageBytes,
    // Rows arrive while a file is written.
    "grpc-node.flow_control_window": 8 * 1024 * 1024,
  });
  const call = client.exportTables(ExportTablesRequest.create(days), metadata);
  const stop = () => call.cancel();
  signal.addEventListener("abort", stop, { once: true });
  try {
    yield* call as AsyncIterable<ExportTablesResponse>;
  } catch (error) {
    if ((error as ServiceError).code === status.CANCELLED && !signal.aborted)
      throw new CommandError(`the server at ${target.name} has ended the connection.`);
    throw worded(error as ServiceError, target);
  } finally {
    signal.removeEventListener("abort", stop);
    call.on("error", () => {});
    stop();
    client.close();
  }
}

function decompressed({ zstd: frame, size }: CompressedRows): Buffer {
  if (size > maxMessageBytes) throw new Error(`a message of ${size} bytes`);
  return asBuffer(zstd.decompress(frame, size));
}

type OpenTable = TableOfDay & { readonly rows: Rows; count: number };

async function writeAll(
  received: AsyncIterable<ExportTablesResponse>,
  files: ExportFolder,
  written: Written,
  onRows: () => void,
): Promise<void> {
  let table: OpenTable | undefined;
  const flush = async (of: OpenTable) => {
    if (of.rows.count > 0) written.bytes += await files.write(of, of.rows);
    of.rows.clear();
  };
  for await (const { body } of received) {
    if (body?.$case === "begin") {
      table = openTable(body.value);
      await files.begin(table, body.value.workspace);
    } else if ((body?.$case === "rows" || body?.$case === "compressed_rows") && table !== undefined) {
      const bytes = body.$case === "rows" ? asBuffer(body.value) : decompressed(body.value);
      for (let at = 0; at < bytes.length; ) {
        const before = table.rows.count;
        at = table.rows.add(bytes, at, maxFileRows);
        table.count += table.rows.count - before;
        written.rows += table.rows.count - before;
        if (table.rows.count === maxFileRows || table.rows.bytes > maxFileBytes) await flush(table);
      }
      onRows();
    } else if (body?.$case === "end" && table !== undefined) {
      if (BigInt(table.count) !== body.value.rows) throw new Error(`rows of ${table.name} are missing`);
      await flush(table);
    } else if (body?.$case === "done" && body.value.day !== "") {
      await files.finish();
      written.lastDay = body.value.day;
    }
  }
}

/** @throws CommandError when a name could lead out of the folder, or this version does not know a type */
function openTable({ table: name, day, columns }: TableBegin): OpenTable {
  if (!/^[a-z][a-z0-9_]*$/.test(name) || !/^(\d{4}-\d{2}-\d{2})?$/.test(day))
    throw new CommandError(`the server sent a table that is none: ${JSON.stringify(name)}.`);
  const heads = columns.map((column): ColumnHead => {
    const type = columnTypes.find((known) => known === column.type);
    if (type === undefined)
      throw new CommandError(`this version can't read ${name}.${column.name}: use a newer tapedeck.`);
    return { name: column.name, type };
  });
  return { name, day, columns: heads, rows: new Rows(heads, maxFileRows), count: 0 };
}
