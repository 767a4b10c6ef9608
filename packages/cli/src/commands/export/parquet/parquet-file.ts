import { type ColumnSource, fileWriter, ParquetWriter, type SchemaElement } from "hyparquet-writer";
import type { ColumnType } from "./columns.ts";
import type { Rows } from "./rows.ts";

type Element = Omit<SchemaElement, "name">;

const elements: Readonly<Record<ColumnType, Element>> = {
  text: { type: "BYTE_ARRAY", converted_type: "UTF8", logical_type: { type: "STRING" } },
  json: { type: "BYTE_ARRAY", converted_type: "JSON", logical_type: { type: "JSON" } },
  int32: { type: "INT32" },
  int64: { type: "INT64" },
  double: { type: "DOUBLE" },
  boolean: { type: "BOOLEAN" },
  timestamp: { type: "INT64", logical_type: { type: "TIMESTAMP", isAdjustedToUTC: true, unit: "MICROS" } },
};

/** What the writer takes the values for: of JSON it would expect objects, and times it would convert once more. */
const asWritten: Readonly<Partial<Record<ColumnType, Element>>> = { json: elements.text, timestamp: elements.int64 };

const maxPageBytes = 1024 * 1024;

/** Writes rows to a file, as one row group. A column is optional in the file where it has a null. Resolves with the file's size. */
export async function writeParquet(path: string, { heads, columns, count }: Rows): Promise<number> {
  const schema: SchemaElement[] = [{ name: "root", num_children: heads.length }];
  const columnData: ColumnSource[] = [];
  for (const [index, { name, type }] of heads.entries()) {
    const column = columns[index];
    if (column === undefined) continue;
    schema.push({
      name,
      ...(asWritten[type] ?? elements[type]),
      repetition_type: column.hasNulls ? "OPTIONAL" : "REQUIRED",
    });
    columnData.push({
      name,
      // Made when the writer comes to it, so that the values of one column at a time take memory.
      get data() {
        return column.values() as never;
      },
      encoding: column.encoding,
      // Made below: the writer takes longer for the bounds of times than for the times.
      statistics: false,
      offsetIndex: false,
    });
  }
  const file = fileWriter(path);
  const writer = new ParquetWriter({ writer: file, schema, codec: "SNAPPY" });
  // A column of one page need not be divided into pages.
  const pageSize = columns.every(({ bytes }) => bytes <= maxPageBytes) ? 0 : maxPageBytes;
  await writer.write({ columnData, rowGroupSize: count, pageSize });
  // Schema and statistics are written last. Readers skip row groups by the bounds of times.
  for (const [index, { type }] of heads.entries()) {
    Object.assign(schema[index + 1] ?? {}, elements[type]);
    const bounds = type === "timestamp" ? columns[index]?.bounds?.() : undefined;
    const chunk = writer.row_groups[0]?.columns[index]?.meta_data;
    if (bounds !== undefined && chunk !== undefined) chunk.statistics = bounds;
  }
  await writer.finish();
  return file.offset;
}
