/** A line, and who printed it. */
export type TextLine = { readonly origin: string; readonly text: string };

/** Makes lines of pieces of text from several that print at the same time. */
export class TextLines {
  readonly #begun = new Map<string, string>();

  take(origin: string, text: string): TextLine[] {
    const lines = `${this.#begun.get(origin) ?? ""}${text}`.split(/\r?\n/);
    const rest = lines.pop() ?? "";
    if (rest === "") this.#begun.delete(origin);
    else this.#begun.set(origin, rest);
    return lines.map((line) => ({ origin, text: line }));
  }

  /** Lines that have no end yet. */
  rest(): TextLine[] {
    const lines = [...this.#begun].map(([origin, text]) => ({ origin, text }));
    this.#begun.clear();
    return lines;
  }
}
