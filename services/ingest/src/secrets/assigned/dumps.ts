import type { TextSpan } from "../span.ts";

/**
 * A list of names and values as Go prints it, without quotes: `map[A:b C:d e]` or `[A=b C=d e]`. A value may hold
 * blanks and brackets, so it extends to the next name.
 */
export type Dump = TextSpan & {
  readonly separator: ":" | "=";
  readonly valueAt: (start: number) => TextSpan;
};

/** Finds the dump around a position. Positions must be asked for from left to right. */
export function dumpsIn(text: string): (at: number) => Dump | undefined {
  const starts = /map\[(?=[\w.-]{1,120}:)|\[(?=[A-Za-z_]\w{0,120}=)/g;
  let current: Dump | undefined;
  let exhausted = false;
  return (at) => {
    while (!exhausted && (current === undefined || current.end <= at)) {
      const match = starts.exec(text);
      if (match === null) {
        exhausted = true;
        current = undefined;
        break;
      }
      current = dumpFrom(text, match.index + match[0].length, match[0] === "map[" ? ":" : "=");
      starts.lastIndex = Math.max(starts.lastIndex, current.end);
    }
    return current !== undefined && current.start <= at && at < current.end ? current : undefined;
  };
}

function dumpFrom(text: string, start: number, separator: Dump["separator"]): Dump {
  const end = endOfDump(text, start);
  const nextName = separator === ":" ? /[ \n][A-Za-z_][\w.-]*:/g : /[ \n][A-Za-z_]\w*=/g;
  const inside = text.slice(start, end);
  return {
    start,
    end,
    separator,
    valueAt(from) {
      nextName.lastIndex = from - start;
      const next = nextName.exec(inside);
      return { start: from, end: next === null ? end : start + next.index };
    },
  };
}

/** The last bracket of its line, else (a value has line ends) the first that ends a line, else the text's end. */
function endOfDump(text: string, start: number): number {
  const lineEnd = text.indexOf("\n", start);
  const bracket = text.slice(start, lineEnd < 0 ? text.length : lineEnd).lastIndexOf("]");
  if (bracket >= 0) return start + bracket;
  const later = lineEnd < 0 ? -1 : text.indexOf("]\n", lineEnd);
  if (later >= 0) return later;
  return text.endsWith("]") ? text.length - 1 : text.length;
}
