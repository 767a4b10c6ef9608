import { type Column, type ColumnType, columnOf } from "./columns.ts";

export type ColumnHead = { readonly name: string; readonly type: ColumnType };

/** The rows of one file, by column. */
export class Rows {
  readonly heads: readonly ColumnHead[];
  readonly columns: readonly Column[];
  #count = 0;
  /** Position and length of each field of the rows that are being added. */
  #fields = new Int32Array(0);

  constructor(heads: readonly ColumnHead[], maxRows: number) {
    this.heads = heads;
    this.columns = heads.map(({ type }) => columnOf(type, maxRows));
  }

  get count(): number {
    return this.#count;
  }

  /** Bytes of memory that the values take. */
  get bytes(): number {
    return this.columns.reduce((sum, { bytes }) => sum + bytes, 0);
  }

  /**
   * Adds whole rows as Postgres' binary COPY writes them: a count of fields in 16 bits; for each field its length in 32 bits, −1
   * for null, and its bytes. Returns the position after the last row that fits into `maxRows`.
   */
  add(from: Buffer, start: number, maxRows: number): number {
    const stride = this.columns.length * 2;
    let rows = 0;
    let at = start;
    while (at < from.length && this.#count + rows < maxRows) {
      const count = from.readInt16BE(at);
      if (count !== this.columns.length) throw new Error(`a row has ${count} fields instead of ${this.columns.length}`);
      at += 2;
      if ((rows + 1) * stride > this.#fields.length) {
        const fields = new Int32Array(Math.max(stride * 256, this.#fields.length * 2));
        fields.set(this.#fields);
        this.#fields = fields;
      }
      const fields = this.#fields;
      for (let field = rows * stride; field < (rows + 1) * stride; field += 2) {
        const length = from.readInt32BE(at);
        at += 4;
        fields[field] = at;
        fields[field + 1] = length;
        if (length > 0) at += length;
      }
      rows++;
    }
    for (const [index, column] of this.columns.entries()) column.add(from, this.#fields, index * 2, stride, rows);
    this.#count += rows;
    return at;
  }

  clear(): void {
    this.#count = 0;
    for (const column of this.columns) column.clear();
  }
}
