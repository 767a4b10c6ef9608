import { endianness } from "node:os";

/** The types of columns, as the server names them (`TableColumn.type` in proto/tapedeck/v1/tables.proto). */
export const columnTypes = ["text", "json", "int32", "int64", "double", "boolean", "timestamp"] as const;

export type ColumnType = (typeof columnTypes)[number];

/** The values of a column in the rows of one file. Values arrive as Postgres' binary COPY has them. */
export type Column = {
  readonly type: ColumnType;
  readonly hasNulls: boolean;
  /** Bytes of memory that its values take. */
  readonly bytes: number;
  /** Adds the fields of rows: pairs of the position in `from` and the length, −1 for null, `stride` apart. */
  add(from: Buffer, fields: Int32Array, first: number, stride: number, rows: number): void;
  readonly encoding: Encoding;
  /** The values of all rows for the writer of Parquet, made anew at each call. */
  values(): ArrayLike<unknown>;
  /** The least and the greatest value; undefined where all are null. */
  bounds?(): Bounds | undefined;
  /** Forgets all values. */
  clear(): void;
};

export type Bounds = { readonly min_value: bigint; readonly max_value: bigint };

export type Encoding = "PLAIN" | "RLE_DICTIONARY" | "DELTA_BINARY_PACKED" | "DELTA_BYTE_ARRAY" | "RLE";

export function columnOf(type: ColumnType, maxRows: number): Column {
  if (type === "text" || type === "json") return new TextColumn(type, maxRows);
  if (type === "int64" || type === "timestamp") return new LongColumn(type, maxRows);
  return new NumberColumn(type, maxRows);
}

/** Grows with its rows, so that the small file of a quiet day takes little memory. */
function grown<Values extends Int32Array | Float64Array | BigInt64Array>(
  values: Values,
  needed: number,
  maxRows: number,
): Values {
  if (needed <= values.length) return values;
  const next = new (values.constructor as new (length: number) => Values)(
    Math.min(maxRows, Math.max(needed, values.length * 2)),
  );
  next.set(values as never);
  return next;
}

const firstRows = 1_024;

/** Parquet counts times from 1970, and Postgres from 2000: microseconds, by 32 bits. */
const microsTo2000 = 946_684_800_000_000;
const since2000 = { high: Math.floor(microsTo2000 / 2 ** 32), low: microsTo2000 % 2 ** 32 };
const since1970 = { high: 0, low: 0 };

/** Where the lower half of a number of 64 bits lies in memory. */
const lowWord = endianness() === "LE" ? 0 : 1;

/** Positions of nulls. Most columns have none. */
class Nulls {
  #rows: number[] = [];

  get any(): boolean {
    return this.#rows.length > 0;
  }

  add(row: number): void {
    this.#rows.push(row);
  }

  /** The same values with null where there is none. */
  in(values: ArrayLike<unknown>): ArrayLike<unknown> {
    if (!this.any) return values;
    const all: unknown[] = new Array(values.length);
    for (let row = 0; row < all.length; row++) all[row] = values[row];
    for (const row of this.#rows) all[row] = null;
    return all;
  }

  clear(): void {
    this.#rows = [];
  }
}

class LongColumn implements Column {
  readonly type: "int64" | "timestamp";
  readonly #maxRows: number;
  readonly #nulls = new Nulls();
  #values = new BigInt64Array(firstRows);
  /** The same memory in halves: a BigInt would be an object for each value. */
  #words = new Int32Array(this.#values.buffer);
  #rows = 0;
  #fitsInt32 = true;

  constructor(type: "int64" | "timestamp", maxRows: number) {
    this.type = type;
    this.#maxRows = maxRows;
  }

  get hasNulls(): boolean {
    return this.#nulls.any;
  }

  get bytes(): number {
    return this.#rows * 8;
  }

  add(from: Buffer, fields: Int32Array, first: number, stride: number, rows: number): void {
    this.#values = grown(this.#values, this.#rows + rows, this.#maxRows);
    if (this.#words.buffer !== this.#values.buffer) this.#words = new Int32Array(this.#values.buffer);
    const words = this.#words;
    const since = this.type === "timestamp" ? since2000 : since1970;
    let at = this.#rows;
    for (let field = first; at < this.#rows + rows; at++, field += stride) {
      if ((fields[field + 1] as number) < 0) {
        this.#nulls.add(at);
        continue;
      }
      const start = fields[field] as number;
      const low = (int32At(from, start + 4) >>> 0) + since.low;
      const high = (int32At(from, start) + since.high + (low >= 2 ** 32 ? 1 : 0)) | 0;
      words[at * 2 + lowWord] = low;
      words[at * 2 + 1 - lowWord] = high;
      if (high !== (low | 0) >> 31) this.#fitsInt32 = false;
    }
    this.#rows = at;
  }

  readonly encoding = "DELTA_BINARY_PACKED";

  /** The writer packs numbers several times quicker than BigInts. */
  values(): ArrayLike<unknown> {
    if (!this.#fitsInt32) return this.#nulls.in(this.#values.subarray(0, this.#rows));
    const numbers = new Int32Array(this.#rows);
    for (let row = 0; row < numbers.length; row++) numbers[row] = this.#words[row * 2 + lowWord] as number;
    return this.#nulls.in(numbers);
  }

  bounds(): Bounds | undefined {
    let bounds: { min_value: bigint; max_value: bigint } | undefined;
    const values = this.#nulls.in(this.#values.subarray(0, this.#rows));
    for (let row = 0; row < values.length; row++) {
      const value = values[row] as bigint | null;
      if (value === null) continue;
      bounds ??= { min_value: value, max_value: value };
      if (value < bounds.min_value) bounds.min_value = value;
      if (value > bounds.max_value) bounds.max_value = value;
    }
    return bounds;
  }

  clear(): void {
    this.#rows = 0;
    this.#fitsInt32 = true;
    this.#values.fill(0n);
    this.#nulls.clear();
  }
}

function int32At(from: Buffer, at: number): number {
  return (
    ((from[at] as number) << 24) |
    ((from[at + 1] as number) << 16) |
    ((from[at + 2] as number) << 8) |
    (from[at + 3] as number)
  );
}

type NumberType = "int32" | "double" | "boolean";

class NumberColumn implements Column {
  readonly type: NumberType;
  readonly #maxRows: number;
  readonly #nulls = new Nulls();
  #values: Int32Array | Float64Array;
  #rows = 0;

  constructor(type: NumberType, maxRows: number) {
    this.type = type;
    this.#maxRows = maxRows;
    this.#values = type === "double" ? new Float64Array(firstRows) : new Int32Array(firstRows);
  }

  get hasNulls(): boolean {
    return this.#nulls.any;
  }

  get bytes(): number {
    return this.#rows * this.#values.BYTES_PER_ELEMENT;
  }

  add(from: Buffer, fields: Int32Array, first: number, stride: number, rows: number): void {
    this.#values = grown(this.#values, this.#rows + rows, this.#maxRows);
    const values = this.#values;
    for (let row = 0, field = first; row < rows; row++, field += stride) {
      const at = fields[field] as number;
      const length = fields[field + 1] as number;
      if (length < 0) this.#nulls.add(this.#rows);
      else if (length === 1) values[this.#rows] = from[at] as number;
      else values[this.#rows] = length === 4 ? from.readInt32BE(at) : from.readDoubleBE(at);
      this.#rows++;
    }
  }

  get encoding(): Encoding {
    return this.type === "boolean" ? "RLE" : this.type === "double" ? "PLAIN" : "DELTA_BINARY_PACKED";
  }

  values(): ArrayLike<unknown> {
    // The writer takes 0 and 1 for booleans.
    return this.#nulls.in(this.#values.subarray(0, this.#rows));
  }

  clear(): void {
    this.#rows = 0;
    this.#values.fill(0);
    this.#nulls.clear();
  }
}

/** After this many rows a column is judged: its texts differ, or they repeat. */
const judgedRows = 4_096;
const none = -1;

/**
 * Each different text is kept once, as bytes in one buffer, and a row has the number of its text: no object for a value. Where
 * most texts differ, as ids do, they are no longer compared, and each row has a text of its own.
 */
class TextColumn implements Column {
  readonly type: "text" | "json";
  readonly #maxRows: number;
  #numbers = new Int32Array(firstRows);
  #rows = 0;
  #hasNulls = false;
  #texts = Buffer.allocUnsafe(firstRows);
  /** Where each text begins, and the end of the last one. */
  #starts = new Int32Array(firstRows);
  #count = 0;
  /** Numbers of texts by their hashes, −1 for none: open addressing. */
  #table = new Int32Array(firstRows * 2).fill(none);
  #areDifferent = false;

  constructor(type: "text" | "json", maxRows: number) {
    this.type = type;
    this.#maxRows = maxRows;
  }

  get hasNulls(): boolean {
    return this.#hasNulls;
  }

  get bytes(): number {
    return this.#rows * 4 + (this.#starts[this.#count] ?? 0) + this.#count * 4;
  }

  add(from: Buffer, fields: Int32Array, first: number, stride: number, rows: number): void {
    this.#numbers = grown(this.#numbers, this.#rows + rows, this.#maxRows);
    let last = none;
    for (let row = 0, field = first; row < rows; row++, field += stride) {
      const at = fields[field] as number;
      const length = fields[field + 1] as number;
      if (length < 0) {
        this.#hasNulls = true;
        this.#numbers[this.#rows++] = none;
        continue;
      }
      if (this.#areDifferent) last = this.#append(from, at, length);
      else if (last === none || !this.#equals(last, from, at, length)) last = this.#numberOf(from, at, length);
      this.#numbers[this.#rows++] = last;
    }
    if (!this.#areDifferent && this.#rows >= judgedRows) this.#areDifferent = this.#count > this.#rows / 2;
  }

  get encoding(): Encoding {
    return this.#areDifferent ? "DELTA_BYTE_ARRAY" : "RLE_DICTIONARY";
  }

  values(): ArrayLike<unknown> {
    const texts = this.#texts;
    const starts = this.#starts;
    const each: unknown[] = new Array(this.#count);
    for (let number = 0; number < this.#count; number++) {
      each[number] = texts.subarray(starts[number], starts[number + 1]);
    }
    const data: unknown[] = new Array(this.#rows);
    for (let row = 0; row < this.#rows; row++) {
      const number = this.#numbers[row] as number;
      data[row] = number === none ? null : each[number];
    }
    return data;
  }

  clear(): void {
    this.#rows = 0;
    this.#count = 0;
    this.#hasNulls = false;
    this.#table.fill(none);
    this.#areDifferent = false;
  }

  #numberOf(from: Buffer, at: number, length: number): number {
    if (this.#count * 2 >= this.#table.length) this.#growTable();
    const mask = this.#table.length - 1;
    for (let slot = hash(from, at, length) & mask; ; slot = (slot + 1) & mask) {
      const number = this.#table[slot] as number;
      if (number === none) {
        this.#table[slot] = this.#count;
        return this.#append(from, at, length);
      }
      if (this.#equals(number, from, at, length)) return number;
    }
  }

  #equals(number: number, from: Buffer, at: number, length: number): boolean {
    const start = this.#starts[number] as number;
    if ((this.#starts[number + 1] as number) - start !== length) return false;
    const texts = this.#texts;
    for (let index = 0; index < length; index++) if (texts[start + index] !== from[at + index]) return false;
    return true;
  }

  #append(from: Buffer, at: number, length: number): number {
    const number = this.#count++;
    const start = this.#starts[number] as number;
    const end = start + length;
    if (end > this.#texts.length) {
      const texts = Buffer.allocUnsafe(Math.max(end, this.#texts.length * 2));
      texts.set(this.#texts.subarray(0, start));
      this.#texts = texts;
    }
    from.copy(this.#texts, start, at, at + length);
    this.#starts = grown(this.#starts, number + 2, this.#maxRows + 1);
    this.#starts[number + 1] = end;
    return number;
  }

  #growTable(): void {
    const table = new Int32Array(this.#table.length * 2).fill(none);
    const mask = table.length - 1;
    for (let number = 0; number < this.#count; number++) {
      const start = this.#starts[number] as number;
      let slot = hash(this.#texts, start, (this.#starts[number + 1] as number) - start) & mask;
      while (table[slot] !== none) slot = (slot + 1) & mask;
      table[slot] = number;
    }
    this.#table = table;
  }
}

/** FNV-1a. */
function hash(from: Buffer, at: number, length: number): number {
  let value = 0x811c9dc5;
  for (let index = at; index < at + length; index++) value = Math.imul(value ^ (from[index] as number), 0x01000193);
  // The low bits choose the slot, and differ least.
  return (value ^ (value >>> 15)) >>> 0;
}
