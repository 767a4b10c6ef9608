/** A line, and who printed it. */
export type TextLine = { readonly origin: string; readonly text: string };

/** Makes lines of pieces of text from several that print at the same time. */
export class TextLines {
  readonly #partialLines = new Map<string, string>();

  take(origin: string, text: string): TextLine[] {
    const lines = `${this.#partialLines.get(origin) ?? ""}${text}`.split(/\r?\n/);
    const rest = lines.pop() ?? "";
    if (rest === "") this.#partialLines.delete(origin);
    else this.#partialLines.set(origin, rest);
    return lines.map((line) => ({ origin, text: line }));
  }

  /** Lines that have no end yet. */
  rest(): TextLine[] {
    const lines = [...this.#partialLines].map(([origin, text]) => ({ origin, text }));
    this.#partialLines.clear();
    return lines;
  }
}
