import { type ColumnSource, fileWriter, ParquetWriter, type SchemaElement } from "hyparquet-writer";
import type { ColumnType } from "./columns.ts";
import type { Rows } from "./rows.ts";

const elements: Readonly<Record<ColumnType, Omit<SchemaElement, "name">>> = {
  text: { type: "BYTE_ARRAY", converted_type: "UTF8", logical_type: { type: "STRING" } },
  json: { type: "BYTE_ARRAY", converted_type: "UTF8" },
  int32: { type: "INT32" },
  int64: { type: "INT64" },
  double: { type: "DOUBLE" },
  boolean: { type: "BOOLEAN" },
  timestamp: { type: "INT64", logical_type: { type: "TIMESTAMP", isAdjustedToUTC: true, unit: "MICROS" } },
};

/** Writes rows to a file, as one row group. A column is optional in the file where it has a null. Resolves with the file's size. */
export async function writeParquet(path: string, { heads, columns, count }: Rows): Promise<number> {
  const schema: SchemaElement[] = [{ name: "root", num_children: heads.length }];
  const columnData: ColumnSource[] = [];
  for (const [index, { name, type }] of heads.entries()) {
    const column = columns[index];
    if (column === undefined) continue;
    schema.push({ name, ...elements[type], repetition_type: column.hasNulls ? "OPTIONAL" : "REQUIRED" });
    columnData.push({
      name,
      // Made when the writer comes to it, so that the values of one column at a time take memory.
      get data() {
        return column.values() as never;
      },
      encoding: column.encoding,
      // Readers skip row groups by them.
      statistics: type === "timestamp",
      offsetIndex: false,
    });
  }
  const file = fileWriter(path);
  const writer = new ParquetWriter({ writer: file, schema, codec: "SNAPPY" });
  await writer.write({ columnData, rowGroupSize: count });
  // The writer takes objects for JSON, and these are texts already: it learns it before it writes the schema, which is last.
  for (const [index, { type }] of heads.entries()) {
    const element = schema[index + 1];
    if (type === "json" && element !== undefined) {
      element.converted_type = "JSON";
      element.logical_type = { type: "JSON" };
    }
  }
  await writer.finish();
  return file.offset;
}
