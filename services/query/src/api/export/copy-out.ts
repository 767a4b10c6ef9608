import type pg from "pg";

/** Enough for one write to the network. */
const chunkBytes = 256 * 1024;
/** What waits for the caller before Postgres is no longer read. */
const maxWaiting = 4;

const emptyChunk = Buffer.alloc(0);

/** Signature, flags and the length of the extension, which is none. */
const headerBytes = 19;

/** pg's types lack what a query of one's own is called with. */
type Connection = { query(text: string): void; readonly stream: { pause(): void; resume(): void } };

/** What `pack` has made of whole rows. */
export type CopiedRows<Packed> = { readonly rows: Packed; readonly count: number };

/**
 * Copies the rows of a query, in chunks of whole rows as Postgres' binary COPY writes them, without its header and trailer.
 * `pack` gets them in memory that is used again for the next ones: buffers of each chunk would be a garbage collection for
 * every few MB. Postgres is read at the pace of the caller. A caller that stops before the end has to end the client. A copy whose
 * client is ended while its caller waits rejects.
 */
export async function* copyOut<Packed>(
  client: pg.Client,
  query: string,
  pack: (rows: Buffer) => Packed,
): AsyncGenerator<CopiedRows<Packed>, void> {
  const copy = new CopyOut(`copy (${query}) to stdout (format binary)`, pack);
  client.query(copy);
  for (let next = await copy.next(); next !== undefined; next = await copy.next()) yield next;
}

/** A query as pg's client takes it: it calls the handlers with what the server sends. */
class CopyOut<Packed> {
  readonly #text: string;
  readonly #pack: (rows: Buffer) => Packed;
  readonly #chunks: CopiedRows<Packed>[] = [];
  #connection: Connection | undefined;
  #chunk = emptyChunk;
  #used = 0;
  #count = 0;
  #isBegun = false;
  #isOver = false;
  #error: Error | undefined;
  #wake: () => void = () => {};

  constructor(text: string, pack: (rows: Buffer) => Packed) {
    this.#text = text;
    this.#pack = pack;
  }

  async next(): Promise<CopiedRows<Packed> | undefined> {
    while (this.#chunks.length === 0 && !this.#isOver && this.#error === undefined) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    if (this.#error !== undefined) throw this.#error;
    const next = this.#chunks.shift();
    if (this.#chunks.length < maxWaiting) this.#connection?.stream.resume();
    return next;
  }

  submit(connection: Connection): void {
    this.#connection = connection;
    connection.query(this.#text);
  }

  handleCopyData({ chunk }: { readonly chunk: Buffer }): void {
    const row = this.#isBegun ? chunk : chunk.subarray(headerBytes);
    this.#isBegun = true;
    // The trailer is a row of −1 fields.
    if (row.length < 2 || row.readInt16BE(0) === -1) return;
    if (this.#used + row.length > this.#chunk.length) {
      this.#flush();
      if (row.length > this.#chunk.length) this.#chunk = Buffer.allocUnsafe(Math.max(chunkBytes, row.length));
    }
    this.#used += row.copy(this.#chunk, this.#used);
    this.#count++;
  }

  handleCommandComplete(): void {
    this.#flush();
  }

  handleReadyForQuery(): void {
    this.#isOver = true;
    // What waits is all that there is. A socket that is paused does not notice its end.
    this.#connection?.stream.resume();
    this.#wake();
  }

  handleError(error: Error): void {
    this.#error ??= error;
    this.#wake();
  }

  #flush(): void {
    if (this.#count === 0) return;
    this.#chunks.push({ rows: this.#pack(this.#chunk.subarray(0, this.#used)), count: this.#count });
    this.#used = 0;
    this.#count = 0;
    if (this.#chunks.length >= maxWaiting) this.#connection?.stream.pause();
    this.#wake();
  }
}
