type Life = {
  readonly connection: string;
  /** Rows of the recording, in the order in which they were taken in. */
  readonly rows: number[];
  /** So many of them were taken in, and all that they gave was recorded. */
  recorded: number;
};

/**
 * Knows which rows of a kind each connection to a fake has taken in, and whether what they gave is recorded. An answer
 * is taken in when the same connection asks again: a process may be killed before it reads what it was answered.
 */
export class Observations {
  readonly #lives: Life[] = [];
  #answers = 0;

  /** A connection asks for a list. `told`: the row that was told last; `answers`: how many were given to anybody so far. */
  asked(connection: string, { reported, answers }: { readonly reported: number; readonly answers: number }): void {
    const life = this.#lives.at(-1);
    if (life?.connection !== connection) this.#lives.push({ connection, rows: [], recorded: 0 });
    // A call that the client gave up was not answered.
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

  /** Rows that one connection took in one after the other (the same row twice, perhaps), both of them recorded. */
  get recordedPairs(): readonly (readonly [number, number])[] {
    return this.#lives.flatMap(({ rows, recorded }) =>
      rows.slice(1, recorded).map((row, index) => [rows[index] ?? 0, row] as const),
    );
  }
}
