type Life = {
  readonly connection: string;
  /** Rows of the recording, in the order in which they were read. */
  readonly rows: number[];
  /** The number of rows that were read and whose events were all recorded. */
  recorded: number;
};

/**
 * Tracks which rows of a kind each connection to a fake has read, and whether their events are recorded. An answer
 * counts as read when the same connection sends the next request: a process may be killed before it reads an answer.
 */
export class Observations {
  readonly #lives: Life[] = [];
  #answers = 0;

  /**
   * A connection requests a list. `reported`: the row that was reported last; `answers`: how many were given to all
   * connections so far.
   */
  answered(connection: string, { reported, answers }: { readonly reported: number; readonly answers: number }): void {
    const life = this.#lives.at(-1);
    if (life?.connection !== connection) this.#lives.push({ connection, rows: [], recorded: 0 });
    // A call that the client abandoned was not answered.
    else if (answers > this.#answers) life.rows.push(reported);
    this.#answers = answers;
  }

  /** The function returned is called when all that was taken in before this call is recorded. */
  takenIn(): () => void {
    const life = this.#lives.at(-1);
    const count = life?.rows.length ?? 0;
    return () => {
      if (life !== undefined) life.recorded = Math.max(life.recorded, count);
    };
  }

  /** Rows that one connection read one after the other (perhaps the same row twice), both of them recorded. */
  get recordedPairs(): readonly (readonly [number, number])[] {
    return this.#lives.flatMap(({ rows, recorded }) =>
      rows.slice(1, recorded).map((row, index) => [rows[index] ?? 0, row] as const),
    );
  }
}
