import type { TextSpan } from "./span.ts";

/** Colours of a terminal, as such or as JSON, shells and `cat -v` write them. */
const introducers = ["\\x1b", "\\\\u001b", "\\\\x1b", "\\\\033", "\\\\e", "\\^\\["];
const colour = new RegExp(`(?:${introducers.join("|")})\\[[\\d;]{0,20}[mK]`, "gi");

/** A text without its colours, and the way back. */
export type Colourless = { readonly text: string; readonly spansIn: (spans: readonly TextSpan[]) => TextSpan[] };

/** Tools colour names and values, so colours stand where a rule looks for a value. Undefined: the text has none. */
export function withoutColours(text: string): Colourless | undefined {
  const pieces: { readonly start: number; readonly at: number; readonly length: number }[] = [];
  let done = 0;
  let length = 0;
  for (const { index, 0: sequence } of text.matchAll(colour)) {
    pieces.push({ start: length, at: done, length: index - done });
    length += index - done;
    done = index + sequence.length;
  }
  if (done === 0) return undefined;
  pieces.push({ start: length, at: done, length: text.length - done });
  return {
    text: pieces.map(({ at, length }) => text.slice(at, at + length)).join(""),
    /** Colours inside a secret stay. Spans are sorted, as pieces are. */
    spansIn(spans) {
      const found: TextSpan[] = [];
      let first = 0;
      for (const { start, end } of spans) {
        while (first + 1 < pieces.length && (pieces[first + 1]?.start ?? 0) <= start) first += 1;
        for (let index = first; index < pieces.length; index += 1) {
          const piece = pieces[index];
          if (piece === undefined || piece.start >= end) break;
          const from = Math.max(start, piece.start);
          const to = Math.min(end, piece.start + piece.length);
          if (to > from) found.push({ start: piece.at + from - piece.start, end: piece.at + to - piece.start });
        }
      }
      return found;
    },
  };
}
